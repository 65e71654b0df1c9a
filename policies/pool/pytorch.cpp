#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// PyTorch's native caching allocator; rules and source: class CachingAllocator. `tidepool audit` compares the same
/// code with recorded addresses.
const RegisterPool kPytorch{{.name = "pytorch",
                             .summary = "PyTorch's caching allocator with native segments",
                             .paper = "c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.10",
                             .options = caching_options(),
                             .make = [](const Options& options) {
                               return std::make_unique<CachingPool>(caching_config("pytorch", options, false));
                             }}};

}  // namespace
}  // namespace tidepool
