#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// PyTorch's caching allocator with expandable_segments:True: one range of addresses per stream and size class, mapped
/// in pages of 2 MiB (small requests) or large_segment_size. Rules and source: class CachingAllocator.
const RegisterPool kPytorchExpandable{
    {.name = "pytorch-expandable",
     .summary = "PyTorch's caching allocator with expandable segments, mapped page by page",
     .paper = "c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.1 to 2.10",
     .options = caching_options(),
     .make = [](const Options& options) {
       return std::make_unique<CachingPool>(caching_config("pytorch-expandable", options, true));
     }}};

}  // namespace
}  // namespace tidepool
