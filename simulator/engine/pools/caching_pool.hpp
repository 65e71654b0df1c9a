// PyTorch's caching allocator as a pool.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/options.hpp"

namespace tidepool {

/// The settings of PYTORCH_CUDA_ALLOC_CONF that are modelled, as options of a pool.
std::vector<OptionInfo> caching_options();

/// Reads the caching_options(). @param owner  the pool's name, for messages
/// @throws InputError  "pytorch: option 'max_split_size' is 10MiB; expected 0B (no limit) or 20MiB or more, in whole
///                     MiB", and similar messages for every range that PyTorch 2.10 checks. Earlier versions differ:
///                     until 2.8, max_split_size had to be above 20 MiB, and in a list of roundup_power2_divisions the
///                     value for ">" also replaced the value of the last size.
CachingConfig caching_config(const std::string& owner, const Options& options, bool expandable);

/// The caching_options() that differ from their defaults as text for PYTORCH_CUDA_ALLOC_CONF, as in
/// "expandable_segments:True,max_split_size_mb:64".
std::string caching_conf(const Options& options, bool expandable);

/// A request of one stream does not get a block of another stream. Every use of a block by another stream counts as
/// recorded (torch.Tensor.record_stream); without times (`tidepool pack`), such blocks are free at once. The garbage
/// collector's threshold is a share of the capacity; in PyTorch it is a share of the memory fraction, which the user
/// must set.
class CachingPool final : public Pool {
 public:
  explicit CachingPool(const CachingConfig& config) : config_{config} {}

  void start(const Trace&, Bytes capacity, Device& device) override {
    capacity_ = capacity;
    memory_.emplace(config_, device, capacity);
  }
  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    memory_->poll(request.now);
    return memory_->malloc(request.size, {.stream = static_cast<std::int64_t>(request.stream.value())});
  }
  void release(const Block& block) override { memory_->free(block.offset); }
  void give_back(const Block& block, const Departure& departure) override {
    memory_->free_after(block.offset, departure.uses);
  }
  Bytes largest_hole() const override { return memory_->largest_hole(); }

 private:
  CachingConfig config_;
  Bytes capacity_;
  std::optional<CachingAllocator> memory_;
};

}  // namespace tidepool
