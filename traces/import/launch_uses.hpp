// Uses of buffers by an op, from its launch and from the schema of the framework's operator.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// Joins both kinds of evidence. The parameters of a launch, if recorded, name the buffers that a kernel uses. The
/// operator's schema says how they are used. A buffer that the operator only reads is read by each of its kernels. A
/// buffer that it writes is written by the first kernel that has it as a parameter; later kernels may read and write
/// it. A kernel only reads a buffer that it has as a const parameter. A launch without recorded parameters gets all
/// uses of the operator. If the operator has several launches, these uses are a guess (evidence inferred).
///
/// An op that stands for a whole operator has the uses of the schema. Its recorded launch adds the buffers that are no
/// tensors of the framework (kind unknown). They are workspaces, and count as overwritten unless they are only read.
class LaunchUses {
 public:
  /// The buffer that is at an address now.
  using Find = std::function<std::optional<BufferId>(std::int64_t address)>;

  /// @param timeline  must outlive this
  explicit LaunchUses(const GpuTimeline& timeline);

  /// The uses of `op`, the next one in program order. Addresses without a buffer are counted in the losses, except
  /// those from a schema or of a copy, which may be on the host.
  std::vector<TraceBuilder::Touch> of(TraceBuilder& builder, const GpuOp& op, const Find& find);

 private:
  std::vector<TraceBuilder::Touch> resolve(TraceBuilder& builder, const GpuUses& uses, const Find& find);
  void settle(std::vector<TraceBuilder::Touch>& seen, const std::vector<TraceBuilder::Touch>& schema,
              std::vector<BufferId>& written) const;

  static void add_workspaces(const TraceBuilder& builder, const std::vector<TraceBuilder::Touch>& seen,
                             std::vector<TraceBuilder::Touch>& schema);

  const GpuTimeline& timeline_;
  std::vector<std::size_t> ops_of_call_;
  std::vector<std::vector<BufferId>> written_;  // by call: buffers that its earlier ops wrote
};

}  // namespace tidepool
