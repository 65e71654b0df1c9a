// Idle intervals of a step: intervals in which no op uses a buffer whose content is needed again.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/machine.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct Assumptions;

/// A buffer's content is idle after op `release` until op `due` reads it. A gap may cross the boundary between two
/// iterations: then `due` is in the next one (at least the number of ops), and `in` is an initial version.
struct Gap {
  VersionId out;  ///< the version that may leave after `release`
  VersionId in;   ///< the version that must be back for `due`: the same one or, if the gap crosses the boundary, the
                  ///< initial version of the buffer that continues `out`
  Bytes size;
  std::uint32_t release = 0;  ///< op
  std::uint32_t due = 0;      ///< position, see StepCircle; > release + 1
  bool crosses = false;       ///< the boundary between two iterations
  /// Op that makes the content of `out`; kBefore: no op of this step; kUnchanged: no op of any step.
  std::uint32_t made = kBefore;

  /// If `out` is an initial version that is changed later in the step, and its buffer outlives the step: the last
  /// version of the buffer, and the op that makes it.
  VersionId renewed = {};
  std::uint32_t renewed_by = 0;

  static constexpr std::uint32_t kBefore = ~std::uint32_t{0}, kUnchanged = kBefore - 1;
  bool operator==(const Gap&) const = default;
};

/// All gaps of buffers of at least `least` bytes, in the order of their due ops in the step; O(uses + gaps log gaps).
///
/// A buffer that exists before and after the step continues itself. A buffer that is born in the step and outlives it
/// is paired with one of the same size that existed before and ends in the step: the first continues as the second in
/// the next iteration. Pairs are made in the order of release and due op. Content that is overwritten without being
/// read makes no gap. Content that the last op uses makes no gap across the boundary. Versions that the assumptions pin
/// are in no gap.
std::vector<Gap> find_gaps(const Trace& trace, Bytes least, const Assumptions& assume = {});

/// The gaps of the run of `spec`. For repeated iterations: all of find_gaps(). For a step that is run once, a gap that
/// crosses the boundary has its content on the host at the start. Its content leaves the device after its release only
/// if the load exceeds the capacity in a later slot.
std::vector<Gap> find_gaps_of_run(const Trace& trace, Bytes least, const StepCircle& circle, const RunSpec& spec);

/// Earliest start of a gap's swap-out: the end of the op that releases it.
inline Nanos released(const StepCircle& circle, const Gap& gap) { return circle.at(gap.release + std::size_t{1}); }

/// Duration of the gap minus both copies; negative if they do not fit in.
inline Nanos spare_time(const StepCircle& circle, const Gap& gap, const Machine& machine) {
  return circle.at(gap.due) - released(circle, gap) - machine.d2h.time(gap.size) - machine.h2d.time(gap.size);
}

}  // namespace tidepool
