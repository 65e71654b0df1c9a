#include "simulator/engine/pools/cnmem.hpp"

#include <algorithm>

#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// CnMem with one root manager for all streams; rules and source: class CnMem. If the capacity is less than the initial
/// size, the first segment is the capacity, rounded down to CnMem::kGranularity (CnMem itself would refuse to start).
class CnMemPool final : public Pool {
 public:
  explicit CnMemPool(const Options& options) : initial_{options.bytes("init")} {}

  void start(const Trace&, Bytes capacity, Device& device) override {
    capacity_ = capacity;
    const Bytes whole = CnMem::kGranularity * (capacity / CnMem::kGranularity);
    memory_.emplace(device, std::min(initial_, whole));
  }
  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    return memory_->malloc(request.size);
  }
  void release(const Block& block) override { memory_->free(block.offset); }
  Bytes largest_hole() const override { return memory_->largest_hole(); }

 private:
  Bytes initial_, capacity_;
  std::optional<CnMem> memory_;
};

const RegisterPool kCnmem{
    {.name = "cnmem",
     .summary = "NVIDIA CnMem: best fit in segments of exactly the size that was missing, never given back",
     .paper = "github.com/NVIDIA/cnmem 37896cc; the baseline of Zhang et al., arXiv 1903.06631",
     .options = {{"init", "256MiB", "bytes", "size of the first segment, reserved when the run begins"}},
     .make = [](const Options& options) { return std::make_unique<CnMemPool>(options); }}};

}  // namespace
}  // namespace tidepool
