#include "policies/pool/cuda_async/cuda_async_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// CUDA's stream-ordered allocator; documented rules and assumptions: class CudaAsync.
class CudaAsyncPool final : public Pool {
 public:
  explicit CudaAsyncPool(const Options& options)
      : config_{.release_threshold = options.bytes("release_threshold"),
                .follow_event_dependencies = options.flag("follow_event_dependencies"),
                .opportunistic = options.flag("allow_opportunistic"),
                .internal_dependencies = options.flag("allow_internal_dependencies"),
                .granule = size_of("cuda-async", options, "granule")} {}

  void start(const Trace& trace, Bytes capacity, Device& device) override {
    capacity_ = capacity;
    memory_.emplace(config_, trace, device, capacity);
  }
  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    return memory_->malloc(request);
  }
  void release(const Block& block) override { memory_->free(block.offset); }
  void give_back(const Block& block, const Departure& departure) override {
    memory_->free_async(block.offset, departure);
  }
  void synchronized(OpId, Nanos now) override { memory_->synchronized(now); }
  Bytes largest_hole() const override { return memory_->largest_hole(); }

 private:
  CudaAsyncConfig config_;
  Bytes capacity_;
  std::optional<CudaAsync> memory_;
};

const RegisterPool kCudaAsync{
    {.name = "cuda-async",
     .summary = "CUDA's stream-ordered pool (cudaMallocAsync) as documented; placement assumed, uncalibrated",
     .paper = "CUDA programming guide, stream-ordered memory allocator; cudaMemPoolAttr of the runtime API",
     .options =
         {{"release_threshold", "0B", "bytes",
           "bytes that stay reserved, used or not, when the host waits for the device"},
          {"follow_event_dependencies", "on", "on/off", "reuse what another stream freed once it was waited for"},
          {"allow_opportunistic", "on", "on/off", "reuse what another stream freed once that has passed the free"},
          {"allow_internal_dependencies", "on", "on/off", "when the device refuses, reuse and wait for the free"},
          {"granule", "32MiB", "bytes", "memory is taken from the device in multiples of it (assumed)"}},
     .make = [](const Options& options) { return std::make_unique<CudaAsyncPool>(options); }}};

}  // namespace
}  // namespace tidepool
