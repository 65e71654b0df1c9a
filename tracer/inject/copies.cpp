#include <cupti.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tracer/inject/callbacks.hpp"

namespace tidepool::inject {
namespace {

using cupti::DriverCall;

// One struct for each kind of call: the parameters of calls of a kind begin with the same fields.
static_assert(offsetof(cuMemcpy_params, src) == offsetof(cuMemcpyHtoDAsync_v2_params, srcHost));
static_assert(offsetof(cuMemcpy_params, ByteCount) == offsetof(cuMemcpyDtoH_v2_params, ByteCount));
static_assert(offsetof(cuMemcpyPeer_params, ByteCount) == offsetof(cuMemcpyPeerAsync_params, ByteCount));
static_assert(offsetof(cuMemsetD8_v2_params, N) == offsetof(cuMemsetD8Async_params, N));
static_assert(offsetof(cuMemsetD2D32_v2_params, Height) == offsetof(cuMemsetD2D32Async_params, Height));

/// The first members of cuMemcpyBatchAsync_params, which headers before CUDA 12.8 lack.
struct BatchParameters {
  const CUdeviceptr* to;
  const CUdeviceptr* from;
  const std::size_t* sizes;
  std::size_t count;
};

void append(std::vector<raw::BufferUse>& uses, std::uint64_t address, std::uint64_t bytes, raw::Access access) {
  if (address != 0 && bytes != 0) uses.push_back({address, bytes, 0, 0, access, raw::Evidence::kCopy});
}

void append_pair(std::vector<raw::BufferUse>& uses, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  append(uses, from, bytes, raw::Access::kRead);
  append(uses, to, bytes, raw::Access::kWrite);
}

/// The bytes that `rows` rows of `width` bytes span, from the begin of the first row to the end of the last. Rows begin
/// `pitch` bytes apart, but at least `width`.
std::uint64_t extent(std::uint64_t pitch, std::uint64_t width, std::uint64_t rows) {
  return rows == 0 ? 0 : (rows - 1) * std::max(pitch, width) + width;
}

std::uint64_t address_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_HOST) return reinterpret_cast<std::uint64_t>(host);
  return type == CU_MEMORYTYPE_ARRAY ? 0 : device;  // device or unified
}

void append_2d(const CUDA_MEMCPY2D& copy, std::vector<raw::BufferUse>& uses) {
  const auto one = [&](std::uint64_t base, std::size_t pitch, std::size_t x, std::size_t y, raw::Access access) {
    if (base != 0) append(uses, base + y * pitch + x, extent(pitch, copy.WidthInBytes, copy.Height), access);
  };
  one(address_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice), copy.srcPitch, copy.srcXInBytes, copy.srcY,
      raw::Access::kRead);
  one(address_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice), copy.dstPitch, copy.dstXInBytes, copy.dstY,
      raw::Access::kWrite);
}

/// Adds the memory that a CUDA_MEMCPY3D or a CUDA_MEMCPY3D_PEER reads and writes. The members that are used here have
/// the same names in both.
template <class Copy>
void append_3d(const Copy& copy, std::vector<raw::BufferUse>& uses) {
  const auto one = [&](std::uint64_t base, std::size_t pitch, std::size_t height, std::size_t x, std::size_t y,
                       std::size_t z, raw::Access access) {
    if (base == 0) return;
    const std::uint64_t slice = pitch * std::max(height, copy.Height);
    append(uses, base + z * slice + y * pitch + x,
           copy.Depth == 0 ? 0 : (copy.Depth - 1) * slice + extent(pitch, copy.WidthInBytes, copy.Height), access);
  };
  one(address_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice), copy.srcPitch, copy.srcHeight, copy.srcXInBytes,
      copy.srcY, copy.srcZ, raw::Access::kRead);
  one(address_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice), copy.dstPitch, copy.dstHeight, copy.dstXInBytes,
      copy.dstY, copy.dstZ, raw::Access::kWrite);
}

template <class Parameters>
void append_memset(const void* parameters, std::uint64_t element, std::vector<raw::BufferUse>& uses) {
  const auto& p = *static_cast<const Parameters*>(parameters);
  append(uses, p.dstDevice, p.N * element, raw::Access::kWrite);
}

template <class Parameters>
void append_memset_2d(const void* parameters, std::uint64_t element, std::vector<raw::BufferUse>& uses) {
  const auto& p = *static_cast<const Parameters*>(parameters);
  append(uses, p.dstDevice, extent(p.dstPitch, p.Width * element, p.Height), raw::Access::kWrite);
}

}  // namespace

void append_copy(DriverCall call, const void* parameters, std::vector<raw::BufferUse>& uses) {
  switch (call) {
    case DriverCall::kCopy: {
      const auto& p = *static_cast<const cuMemcpy_params*>(parameters);
      return append_pair(uses, p.src, p.dst, p.ByteCount);
    }
    case DriverCall::kCopyPeer: {
      const auto& p = *static_cast<const cuMemcpyPeer_params*>(parameters);
      return append_pair(uses, p.srcDevice, p.dstDevice, p.ByteCount);
    }
    case DriverCall::kCopyBatch: {
      const auto& p = *static_cast<const BatchParameters*>(parameters);
      for (std::size_t i = 0; i < p.count; ++i) append_pair(uses, p.from[i], p.to[i], p.sizes[i]);
      return;
    }
    case DriverCall::kCopy2D:
      return append_2d(*static_cast<const cuMemcpy2D_v2_params*>(parameters)->pCopy, uses);
    case DriverCall::kCopy3D:
      return append_3d(*static_cast<const cuMemcpy3D_v2_params*>(parameters)->pCopy, uses);
    case DriverCall::kCopy3DPeer:
      return append_3d(*static_cast<const cuMemcpy3DPeer_params*>(parameters)->pCopy, uses);
    case DriverCall::kMemset8:
      return append_memset<cuMemsetD8_v2_params>(parameters, 1, uses);
    case DriverCall::kMemset16:
      return append_memset<cuMemsetD16_v2_params>(parameters, 2, uses);
    case DriverCall::kMemset32:
      return append_memset<cuMemsetD32_v2_params>(parameters, 4, uses);
    case DriverCall::kMemset2D8:
      return append_memset_2d<cuMemsetD2D8_v2_params>(parameters, 1, uses);
    case DriverCall::kMemset2D16:
      return append_memset_2d<cuMemsetD2D16_v2_params>(parameters, 2, uses);
    case DriverCall::kMemset2D32:
      return append_memset_2d<cuMemsetD2D32_v2_params>(parameters, 4, uses);
    default:
      return;
  }
}

void append_copy_node(const CUDA_MEMCPY3D& copy, std::vector<raw::BufferUse>& uses) { append_3d(copy, uses); }

void append_memset_node(const CUDA_MEMSET_NODE_PARAMS& memset, std::vector<raw::BufferUse>& uses) {
  append(uses, memset.dst, extent(memset.pitch, memset.width * memset.elementSize, memset.height), raw::Access::kWrite);
}

}  // namespace tidepool::inject
