#include "policies/pool/bfc/bfc_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The allocator of TensorFlow and of XLA's runtime; rules and source: class Bfc. It ignores streams, since TensorFlow
/// and XLA run all users of one allocator on one stream. With allow_growth=off it owns the whole capacity, and its
/// height is the largest address in use.
class BfcPool final : public Pool {
 public:
  explicit BfcPool(const Options& options)
      : config_{.allow_growth = options.flag("allow_growth"),
                .garbage_collection = options.flag("garbage_collection"),
                .fragmentation_fraction = number_of("bfc", options, "fragmentation_fraction", 1)} {}

  void start(const Trace&, Bytes capacity, Device& device) override {
    capacity_ = capacity;
    memory_.emplace(config_, device, capacity);
  }
  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    return memory_->malloc(request.size);
  }
  void release(const Block& block) override { memory_->free(block.offset); }
  Bytes largest_hole() const override { return memory_->largest_hole(); }

 private:
  BfcConfig config_;
  Bytes capacity_;
  std::optional<Bfc> memory_;
};

const RegisterPool kBfc{
    {.name = "bfc",
     .summary = "TensorFlow's and XLA's best fit with coalescing, in regions of doubling size or in one",
     .paper = "openxla/xla, xla/tsl/framework/bfc_allocator.cc at 00df9ee",
     .options =
         {{"allow_growth", "on", "on/off", "take regions as they are needed; off: the whole capacity at once"},
          {"garbage_collection", "off", "on/off", "give free regions back rather than run out of memory"},
          {"fragmentation_fraction", "0", "number",
           "a chunk that is larger than the request by this fraction of the capacity is always split; 0: by 128 MiB"}},
     .make = [](const Options& options) { return std::make_unique<BfcPool>(options); }}};

}  // namespace
}  // namespace tidepool
