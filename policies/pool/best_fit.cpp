#include "simulator/engine/pools/arena_pool.hpp"
#include "simulator/engine/pools/free_index.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Exact best fit: the smallest free block that is large enough, among equals the one of the lowest address; the
/// request takes its low part. Freed blocks merge with their free neighbours at once. Cost per request: see FreeIndex.
/// Source: Knuth, The Art of Computer Programming, volume 1, section 2.5, with boundary tags.
using BestFit = ArenaPool<FreeIndex>;

const RegisterPool kBestFit{
    {.name = "best-fit",
     .summary = "one arena, smallest free block that fits, lowest address among equals",
     .paper = "Knuth, TAOCP 1, section 2.5",
     .options = {{"alignment", "512B", "bytes", "sizes and offsets are multiples of it"}},
     .make = [](const Options& options) { return std::make_unique<BestFit>("best-fit", options); }}};

}  // namespace
}  // namespace tidepool
