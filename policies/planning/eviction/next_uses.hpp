// The future uses of each version in an offline trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The future uses of every version: the ops that read it or a view of it. O(ops + versions) to construct.
class NextUses {
 public:
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

  explicit NextUses(const Trace& trace) : trace_{&trace}, is_output_(trace.versions().size()) {
    until_.reserve(trace.ops().size() + 1);
    for (const Op& op : trace.ops()) until_.push_back(until_.back() + op.duration);
    for (const VersionId v : trace.outputs()) is_output_[trace.root(v).index()] = true;
  }

  /// The first op from `op` on that reads the root version `v`. Without one, the number of ops if `v` is an output,
  /// else kNever. O(log readers).
  std::uint32_t next(VersionId v, std::uint32_t op) const {
    const auto readers = trace_->readers(v);
    const auto found = std::lower_bound(readers.begin(), readers.end(), OpId{op});
    if (found != readers.end()) return found->value();
    return is_output_[v.index()] ? static_cast<std::uint32_t>(trace_->ops().size()) : kNever;
  }

  /// Time of the ops in [first, last), each run once.
  Nanos between(std::uint32_t first, std::uint32_t last) const { return until_[last] - until_[first]; }

 private:
  const Trace* trace_;
  std::vector<bool> is_output_;        // by version
  std::vector<Nanos> until_{Nanos{}};  // by op: total time of the ops before it
};

}  // namespace tidepool
