// Chunks packed with zstd, where the recorder can link it.
#pragma once

#include <zstd.h>

#include <cstddef>

namespace tidepool::raw {

/// For WriterOptions::pack. The fastest level: it runs on the writer's thread, beside the job.
inline std::size_t zstd_pack(void* to, std::size_t capacity, const void* from, std::size_t bytes) {
  const std::size_t size = ZSTD_compress(to, capacity, from, bytes, 1);
  return ZSTD_isError(size) ? 0 : size;
}

}  // namespace tidepool::raw
