// Uses of buffers by an op, from its launch and from the schema of the framework's operator.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// Joins both kinds of evidence. A recorded launch has the buffers that a kernel uses; the operator's schema adds how
/// they are used, if that is certain for one kernel of several: buffers that the operator only reads are read; a buffer
/// that it writes is written by the first kernel that has it as a parameter, and may be read and written by later ones.
/// A launch that was not recorded gets all uses of the operator; if it is one of several, that is a guess (evidence
/// inferred).
///
/// An op that is a whole operator has the uses of the schema. A recorded launch of it adds those buffers that are no
/// tensors of the framework (kind unknown): workspaces, which are written without being read unless they are only read.
class LaunchUses {
 public:
  /// The buffer that is at an address now.
  using Find = std::function<std::optional<BufferId>(std::int64_t address)>;

  explicit LaunchUses(const GpuTimeline& timeline);

  /// The uses of `op`, the next one in program order. Addresses without a buffer are counted in the losses, except
  /// those from a schema, whose tensors may be on the host.
  std::vector<TraceBuilder::Touch> of(TraceBuilder& builder, const GpuOp& op, const Find& find);

 private:
  std::vector<TraceBuilder::Touch> resolve(TraceBuilder& builder, const GpuUses& uses, const Find& find);
  void settle(std::vector<TraceBuilder::Touch>& seen, const std::vector<TraceBuilder::Touch>& schema,
              std::vector<BufferId>& written) const;

  static void add_workspaces(const TraceBuilder& builder, const std::vector<TraceBuilder::Touch>& seen,
                             std::vector<TraceBuilder::Touch>& schema);

  const GpuTimeline& timeline_;
  std::vector<std::size_t> ops_of_call_;
  std::vector<std::vector<BufferId>> written_;  // by call, by its earlier ops
};

}  // namespace tidepool
