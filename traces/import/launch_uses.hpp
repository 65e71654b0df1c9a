// Uses of buffers by an op, from its launch and from what is known of the framework's operator.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// Joins both kinds of evidence. Of what a launch was seen to use, the operator's schema says how, as long as that is
/// certain for one kernel of several: what the operator only reads is read; what it writes is written by the first
/// kernel that has it among its parameters, and may be read and written by later ones. A launch that nobody looked at
/// is given what the operator uses; if it is one of several, that is a guess (evidence inferred).
class LaunchUses {
 public:
  /// The buffer that is at an address now.
  using Find = std::function<std::optional<BufferId>(std::int64_t address)>;

  explicit LaunchUses(const GpuTimeline& timeline);

  /// What `op`, the next one in the program's order, uses. Addresses where no buffer is are counted in the losses,
  /// those that a schema names excepted: tensors may be elsewhere.
  std::vector<TraceBuilder::Touch> of(TraceBuilder& builder, const GpuOp& op, const Find& find);

 private:
  std::vector<TraceBuilder::Touch> resolve(TraceBuilder& builder, const GpuUses& uses, const Find& find);
  void settle(std::vector<TraceBuilder::Touch>& seen, const std::vector<TraceBuilder::Touch>& schema,
              std::vector<BufferId>& written) const;

  const GpuTimeline& timeline_;
  std::vector<std::size_t> ops_of_call_;
  std::vector<std::vector<BufferId>> written_;  // by call, by its earlier ops
};

}  // namespace tidepool
