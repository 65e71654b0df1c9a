// Unpacking of LZ4 blocks, as in fat binaries of CUDA before 12.8.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tidepool::dry {

/// What a block holds, `bytes` of it. Empty where the block says something else. Format: lz4_Block_format.md of LZ4 1.9. A
/// library that is preloaded into other programs brings no other library along, hence not liblz4.
std::vector<std::byte> unpack_lz4_block(std::span<const std::byte> block, std::size_t bytes);

}  // namespace tidepool::dry
