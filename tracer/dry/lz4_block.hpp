// Unpacking of LZ4 blocks, as in fat binaries of CUDA before 12.8.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tidepool::dry {

/// The unpacked content of a block: `bytes` bytes. Empty if the block is malformed or its content has another length.
/// Format: lz4_Block_format.md of LZ4 1.9. liblz4 is not used, because a library that is preloaded into other
/// programs should load as few libraries as possible.
std::vector<std::byte> unpack_lz4_block(std::span<const std::byte> block, std::size_t bytes);

}  // namespace tidepool::dry
