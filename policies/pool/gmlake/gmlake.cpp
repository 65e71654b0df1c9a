#include "policies/pool/gmlake/gmlake_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// GMLake; rules and source: class GmLake. The addresses of a stitched block are further addresses of memory that is
/// reserved already (Device::show), so this memory is counted once.
class GmLakePool final : public Pool {
 public:
  explicit GmLakePool(const Options& options)
      : config_{.fragment_limit = options.bytes("fragment_limit"),
                .reuse_limit = options.number("reuse_limit"),
                .defragment_level = static_cast<int>(options.number("defragment_level")),
                .auto_gc = options.bytes("auto_gc")} {
    expect(config_.reuse_limit >= 1, "gmlake", options, "reuse_limit", "1 or more");
  }

  void start(const Trace&, Bytes capacity, Device& device) override {
    capacity_ = capacity;
    memory_.emplace(config_, device, capacity);
  }
  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    memory_->poll(request.now);
    return memory_->malloc(request.size, static_cast<std::int64_t>(request.stream.value()), request.now);
  }
  void release(const Block& block) override { memory_->free(block.offset, Nanos{}); }
  void give_back(const Block& block, const Departure& departure) override {
    memory_->free_after(block.offset, departure.uses, departure.done);
  }
  Bytes largest_hole() const override { return memory_->largest_hole(); }

 private:
  GmLakeConfig config_;
  Bytes capacity_;
  std::optional<GmLake> memory_;
};

const RegisterPool kGmlake{
    {.name = "gmlake",
     .summary = "GMLake: PyTorch's caching in pages of 2 MiB, free blocks stitched for large requests",
     .paper = "Guo et al., ASPLOS 2024; intelligent-machine-learning/glake at 392d840, PyTorch 2.0",
     .options = {{"fragment_limit", "512MiB", "bytes", "requests from here on are stitched (fragLimit)"},
                 {"reuse_limit", "10", "number",
                  "a stitched block serves requests down to this part of it (reuseLimit)"},
                 {"defragment_level", "0", "0|1|2",
                  "stitch 0: at once, 1: when the device refuses, 2: after segments were given back (defragLevel)"},
                 {"auto_gc", "1000GiB", "bytes", "addresses of stitched blocks beyond which free ones go (autoGC)"}},
     .make = [](const Options& options) { return std::make_unique<GmLakePool>(options); }}};

}  // namespace
}  // namespace tidepool
