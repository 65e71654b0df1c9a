#include "simulator/engine/pools/address_index.hpp"
#include "simulator/engine/pools/arena_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// First fit: the free block of the lowest address that is large enough; the low part is taken. Freed blocks merge with
/// their free neighbours at once. O(free blocks / 32) per request.
/// Source: Knuth, The Art of Computer Programming, volume 1, section 2.5, method A with boundary tags.
using FirstFit = ArenaPool<AddressIndex>;

const RegisterPool kFirstFit{
    {.name = "first-fit",
     .summary = "one arena, lowest address that fits",
     .paper = "Knuth, TAOCP 1, section 2.5",
     .options = {{"alignment", "512B", "bytes", "sizes and offsets are multiples of it"}},
     .make = [](const Options& options) { return std::make_unique<FirstFit>("first-fit", options); }}};

}  // namespace
}  // namespace tidepool
