// Operators of the framework, with the kernels, copies and memsets that each of them launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tracer/lower/process_log.hpp"

namespace tidepool {

/// A closed interval on the common clock: [first, last].
struct TimeSpan {
  std::int64_t first = std::numeric_limits<std::int64_t>::min(), last = std::numeric_limits<std::int64_t>::max();
  bool has(std::int64_t time) const { return first <= time && time <= last; }
};

/// The operators of one process, as calls of a timeline. A launch belongs to the operator whose id was pushed around it
/// (external correlation), else to the innermost operator that its thread was in.
class FrameworkCalls {
 public:
  /// Adds the calls and their uses to the timeline.
  /// @param process  must outlive this object
  FrameworkCalls(const ProcessLog& process, GpuTimeline& timeline);

  /// The operator that a launch belongs to, as an index into the timeline's calls; none if there is none.
  /// @param launch  the launch with this correlation id on the host; null: unknown
  std::optional<std::size_t> of(std::uint32_t correlation, const HostLaunch* launch) const;

  /// Adds the innermost operators as ops, for captures without records of the launched work. Durations are the
  /// recorder's estimates, or those of the host's calls.
  void add_as_ops(GpuTimeline& timeline) const;

  /// Replaces the ops from `first` on that were launched within `time` by the innermost operators. An operator's
  /// duration is the recorder's estimate, or the sum over its kernels, copies and memsets; it has their uses. Its
  /// place in the order is that of its last launch, since its outputs are allocated by then. Collectives, and ops
  /// that no innermost operator launched, stay ops. Ops launched outside `time` are left out.
  void replace_launches(GpuTimeline& timeline, std::size_t first, TimeSpan time) const;

 private:
  static constexpr std::size_t kNoCall = static_cast<std::size_t>(-1);
  struct Call {
    std::int64_t start = 0, end = 0;
    std::size_t index = 0;         ///< in the timeline
    std::size_t around = kNoCall;  ///< position of the call that contains this one, in the same list; kNoCall: none
    const raw::Log* log = nullptr;
    const raw::FrameworkOp* record = nullptr;
    std::optional<std::int64_t> estimate;  ///< ns
  };

  /// The launches of one operator, as one op.
  struct Work {
    GpuOp op;  ///< stream and device of the first launch in the timeline; the earliest start, the latest launch
    std::vector<GpuUse> uses;
    bool any = false;   ///< there was a launch
    bool used = false;  ///< an innermost operator in the interval, which becomes an op
  };

  bool innermost(const std::vector<Call>& calls, std::size_t i) const {
    return i + 1 == calls.size() || calls[i + 1].around != i;
  }
  static void add(Work& work, const GpuOp& op, const GpuTimeline& timeline);

  const ProcessLog& process_;
  std::map<std::uint32_t, std::vector<Call>> threads_;  // sorted by start, outer calls first
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::unordered_map<std::uint32_t, std::size_t> by_correlation_;
};

/// The uses of a launch or an operator, which are added to the timeline.
template <class Record>
GpuUses add_uses(const raw::Log& log, const raw::WithUses<Record>& record, GpuTimeline& timeline) {
  const std::size_t first = timeline.uses.size();
  for (std::size_t i = 0; i < record.record.uses; ++i) {
    const raw::BufferUse& use = log.uses[record.first_use + i];
    GpuUse added;
    added.address = checked(log, "address", use.address);
    added.size = checked(log, "size", use.size);
    if (use.access != raw::Access::kUnknown) added.access = static_cast<Access>(static_cast<int>(use.access) - 1);
    added.evidence = use.evidence == raw::Evidence::kUnknown
                         ? Evidence::kInferred
                         : static_cast<Evidence>(static_cast<int>(use.evidence) - 1);
    timeline.uses.push_back(added);
  }
  return {first, timeline.uses.size()};
}
static_assert(static_cast<int>(raw::Access::kTouch) - 1 == static_cast<int>(Access::kTouch) &&
              static_cast<int>(raw::Evidence::kInferred) - 1 == static_cast<int>(Evidence::kInferred));

}  // namespace tidepool
