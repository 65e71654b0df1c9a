// Absences that a step allows: stretches in which nobody uses a buffer whose content is needed again.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/machine/machine.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct Assumptions;

/// A buffer's content is idle after op `release` until op `due` reads it. A gap may cross the boundary between two
/// iterations: then `due` is in the next one (at least the number of ops), and `in` is what the step begins with.
struct Gap {
  VersionId out;  ///< what may leave after `release`
  VersionId in;   ///< what must be back for `due`: the same version, or for a gap that crosses the boundary the initial
                  ///< version of the buffer that `out` is carried over into
  Bytes size;
  std::uint32_t release = 0;  ///< op
  std::uint32_t due = 0;      ///< position, see StepCircle; > release + 1
  bool crosses = false;       ///< the boundary between two iterations
  /// Op that makes the content of `out`; kBefore: none in this step; kUnchanged: none in any.
  std::uint32_t made = kBefore;

  /// Where `out` is changed later in the step and outlives it: what it is in the end, and the op that makes that.
  VersionId renewed = {};
  std::uint32_t renewed_by = 0;

  static constexpr std::uint32_t kBefore = ~std::uint32_t{0}, kUnchanged = kBefore - 1;
  bool operator==(const Gap&) const = default;
};

/// All gaps of buffers of at least `least` bytes, in the order of their due ops in the step; O(uses + gaps log gaps).
///
/// A buffer that outlives the step and existed before it is carried over into itself. One that was born in the step and
/// outlives it is what a buffer of the same size that existed before and ends in the step was an iteration ago: those
/// are paired in the order in which they are released and due. What is overwritten without being read is no gap, nor is
/// what follows the last op: nothing leaves behind it.
/// What the assumptions pin, since sources brought it or it was there before, is in no gap.
std::vector<Gap> find_gaps(const Trace& trace, Bytes least, const Assumptions& assume = {});

/// The gaps of what `spec` runs: those of iterations are all of find_gaps(). In a step that is run once, what a gap
/// that crosses the boundary brings back at the beginning is on the host from the start, and what it would take away at
/// the end stays where all fits into the capacity anyway.
std::vector<Gap> find_gaps_of_run(const Trace& trace, Bytes least, const StepCircle& circle, const RunSpec& spec);

/// When the content of a gap may start to leave: the end of the op that releases it.
inline Nanos released(const StepCircle& circle, const Gap& gap) { return circle.at(gap.release + std::size_t{1}); }

/// Time that the gap leaves beyond the copies out and in; negative if they do not fit in.
inline Nanos spare_time(const StepCircle& circle, const Gap& gap, const Machine& machine) {
  return circle.at(gap.due) - released(circle, gap) - machine.d2h.time(gap.size) - machine.h2d.time(gap.size);
}

}  // namespace tidepool
