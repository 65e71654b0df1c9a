// Changes of each kind that are worth proposing for a step.
#pragma once

#include <vector>

#include "simulator/advise/advise.hpp"

namespace tidepool {

/// The input of all kinds of changes.
struct Question {
  const Trace& step;
  const RunSpec& spec;
  Nanos base;  ///< time of the step as it is
};

/// The actions that a change consists of. Its bound holds for all plans with these actions.
struct Mechanism {
  bool swap = false, remat = false, order = false;
};

/// Whether the ops are PyTorch's operators; in a dry recording they are kernels.
bool has_operators(const Trace& trace);

/// Order of changes: those that fit come first, in front those whose peak is certain, the fastest first; then those
/// whose peak is nearest.
bool is_better(const Change& a, const Change& b, Bytes capacity);

/// The change with its time and its bound, and whether it fits.
Change judged(Change change, const Question& question, Nanos time, Mechanism mechanism);

std::vector<Change> checkpoints(const Question& question);
/// Only for a step whose ops are operators; else empty.
std::vector<Change> selective_checkpoints(const Question& question);
/// activation_memory_budget of a model that torch.compile takes as one graph, with the policy min-cut: the largest
/// budget, in steps of 0.05, that fits; if none fits, the one with the least peak. Only for a step whose ops are
/// operators; else empty.
std::vector<Change> budgets(const Question& question);
std::vector<Change> offloads(const Question& question);
/// The fewest micro-batches, a power of two, that fit; else those with the least peak. No bound is known for them.
std::vector<Change> batches(const Question& question);
/// Updates in backward, if they lower the peak.
std::vector<Change> early_updates(const Question& question);

}  // namespace tidepool
