// Compression of chunks with zstd, for a recorder that is linked to it.
#pragma once

#include <zstd.h>

#include <cstddef>

namespace tidepool::raw {

/// For WriterOptions::pack. Uses zstd's level 1, which is fast: packing runs on the writer's thread during the job.
inline std::size_t zstd_pack(void* to, std::size_t capacity, const void* from, std::size_t bytes) {
  const std::size_t size = ZSTD_compress(to, capacity, from, bytes, 1);
  return ZSTD_isError(size) ? 0 : size;
}

}  // namespace tidepool::raw
