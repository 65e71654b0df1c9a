// Changes of each kind that are worth proposing for a step.
#pragma once

#include <vector>

#include "simulator/advise/advise.hpp"

namespace tidepool {

/// What all kinds are asked.
struct Question {
  const Trace& step;
  const RunSpec& spec;
  Nanos base;  ///< time of the step as it is
};

/// A change that a plan of its kind may be no faster than its bound.
struct Mechanism {
  bool swap = false, remat = false;
};

/// Those that fit come first, the fastest in front; then those that come nearest.
bool is_better(const Change& a, const Change& b, Bytes capacity);

/// The change with its time, its bound and whether it fits.
Change judged(Change change, const Question& question, Nanos time, Mechanism mechanism);

std::vector<Change> checkpoints(const Question& question);
/// Of a step whose ops are operators; else none.
std::vector<Change> selective_checkpoints(const Question& question);
std::vector<Change> offloads(const Question& question);

}  // namespace tidepool
