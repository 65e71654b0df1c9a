#include <fmt/format.h>

#include "policies/pool/bfc/bfc_pool.hpp"
#include "simulator/registry.hpp"
#include "traces/error.hpp"

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
                .fragmentation_fraction = options.number("fragmentation_fraction")} {
    if (config_.fragmentation_fraction < 0 || config_.fragmentation_fraction > 1)
      throw InputError{fmt::format("bfc: option 'fragmentation_fraction' is {}; expected 0 to 1",
                                   options.word("fragmentation_fraction"))};
  }

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
