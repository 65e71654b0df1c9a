// Plans written by hand. Each call, but for run_to(), appends one action, to be done before the op that is next in the
// program.
#pragma once

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool::tests {

class PlanWriter {
 public:
  explicit PlanWriter(const Trace& trace) : trace_{&trace} {}

  PlanWriter& alloc(VersionId v, Bytes offset) { return add(Verb::kAlloc, v.value(), offset, trace_->size(v)); }
  PlanWriter& scratch(VersionId v, Bytes offset) { return add(Verb::kScratch, v.value(), offset, trace_->size(v)); }
  PlanWriter& swap_in(VersionId v, Bytes offset) { return add(Verb::kSwapIn, v.value(), offset, trace_->size(v)); }
  PlanWriter& swap_out(VersionId v) { return add(Verb::kSwapOut, v.value()); }
  PlanWriter& await(VersionId v) { return add(Verb::kAwait, v.value()); }
  PlanWriter& drop(VersionId v) { return add(Verb::kDrop, v.value()); }
  PlanWriter& free(VersionId v) { return add(Verb::kFree, v.value()); }
  PlanWriter& copy(VersionId v) { return add(Verb::kCopy, v.value()); }
  PlanWriter& reserve(Bytes offset, Bytes size, std::uint32_t pages = 0) {
    return add(Verb::kReserve, pages, offset, size);
  }
  PlanWriter& release(Bytes offset, Bytes size) { return add(Verb::kRelease, 0, offset, size); }
  PlanWriter& map(Bytes offset, Bytes size, std::uint32_t page) { return add(Verb::kMap, page, offset, size); }
  PlanWriter& unmap(Bytes offset, Bytes size) { return add(Verb::kUnmap, 0, offset, size); }
  PlanWriter& next(std::uint32_t iteration) {
    next_op_ = 0;
    return add(Verb::kNext, iteration);
  }
  PlanWriter& run(OpId op) {
    add(Verb::kRun, op.value());
    if (op.value() == next_op_) ++next_op_;
    return *this;
  }
  /// Runs every op that has not run yet, up to and including `op`.
  PlanWriter& run_to(OpId op) {
    while (next_op_ <= op.value()) run(OpId{next_op_});
    return *this;
  }

  const Plan& plan() const { return plan_; }

 private:
  PlanWriter& add(Verb verb, std::uint32_t subject, Bytes offset = {}, Bytes size = {}) {
    const OpId before = next_op_ < trace_->ops().size() ? OpId{next_op_} : OpId{};
    plan_.actions.push_back({verb, before, subject, offset, size});
    return *this;
  }

  const Trace* trace_;
  std::uint32_t next_op_ = 0;
  Plan plan_;
};

}  // namespace tidepool::tests
