// The CUDA runtime's entry points about memory: allocations, copies, fills and questions about pointers.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/host_memory.hpp"

using namespace tidepool::dry;

namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Status allocate(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return done(kInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return done(kSuccess);
  const auto got = DryDevice::get().allocate(bytes);
  if (!got) return done(kOutOfMemory);
  *pointer = reinterpret_cast<void*>(*got);
  return done(kSuccess);
}

Status release(void* pointer) {
  return done(pointer == nullptr || DryDevice::get().free(address(pointer)) ? kSuccess : kInvalidValue);
}

Status copy(void* to, const void* from, std::size_t bytes, void* stream) {
  DryDevice& dry_device = DryDevice::get();
  dry_device.copy(dry_device.stream(stream), to, from, bytes);
  return done(kSuccess);
}

Status fill(void* to, int value, std::size_t bytes, void* stream) {
  DryDevice& dry_device = DryDevice::get();
  dry_device.fill(dry_device.stream(stream), to, static_cast<unsigned char>(value), bytes);
  return done(kSuccess);
}

/// The mark that an attribute of memory pools (cudaMemPoolAttr) reads and resets.
std::optional<DeviceMemory::Mark> mark_of(int attribute) {
  constexpr int kMostReserved = 6, kMostUsed = 8;
  if (attribute == kMostReserved) return DeviceMemory::Mark::kReserved;
  if (attribute == kMostUsed) return DeviceMemory::Mark::kUsed;
  return {};
}

/// cudaPointerAttributes; types: 0 pageable host memory, 1 host memory that CUDA knows, 2 device memory.
struct PointerAttributes {
  int type = 0, device = 0;
  void *device_pointer = nullptr, *host_pointer = nullptr;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes); }
Status cudaMallocAsync(void** pointer, std::size_t bytes, void*) { return allocate(pointer, bytes); }
Status cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void*, void*) { return allocate(pointer, bytes); }
Status cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) { return allocate(pointer, bytes); }
Status cudaFree(void* pointer) { return release(pointer); }
Status cudaFreeAsync(void* pointer, void*) { return release(pointer); }

Status cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  DryDevice& dry_device = DryDevice::get();
  dry_device.recorder().asked_for_memory();
  *free = dry_device.free();
  *total = dry_device.total();
  return done(kSuccess);
}

Status cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = pinned_memory().allocate(bytes);
  return done(*pointer != nullptr ? kSuccess : kOutOfMemory);
}
Status cudaMallocHost(void** pointer, std::size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
Status cudaFreeHost(void* pointer) {
  return done(pointer == nullptr || pinned_memory().free(pointer) ? kSuccess : kInvalidValue);
}
Status cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  pinned_memory().add(pointer, bytes);
  return done(kSuccess);
}
Status cudaHostUnregister(void* pointer) { return done(pinned_memory().remove(pointer) ? kSuccess : kInvalidValue); }
Status cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return done(kSuccess);
}

Status cudaPointerGetAttributes(void* out, const void* pointer) {
  PointerAttributes said;
  if (DryDevice::get().memory().owns(address(pointer)))
    said = {2, DryDevice::get().recorder().device(), const_cast<void*>(pointer), nullptr};
  else if (pinned_memory().holds(pointer))
    said = {1, DryDevice::device(), const_cast<void*>(pointer), const_cast<void*>(pointer)};
  else
    said = {0, -2, nullptr, const_cast<void*>(pointer)};
  std::memcpy(out, &said, sizeof said);
  return done(kSuccess);
}

Status cudaMemcpy(void* to, const void* from, std::size_t bytes, int) { return copy(to, from, bytes, nullptr); }
Status cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  return copy(to, from, bytes, stream);
}
Status cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return copy(to, from, bytes, nullptr);
}
Status cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
Status cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, int, void* stream) {
  for (std::size_t row = 0; row < height; ++row)
    copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width, stream);
  return done(kSuccess);
}
Status cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int) {
  void* const variable = DryDevice::get().variable(symbol);
  return variable == nullptr ? done(kNotFound) : copy(static_cast<char*>(variable) + offset, from, bytes, nullptr);
}
Status cudaGetSymbolAddress(void** pointer, const void* symbol) {
  *pointer = DryDevice::get().variable(symbol);
  return done(*pointer != nullptr ? kSuccess : kNotFound);
}

Status cudaMemset(void* to, int value, std::size_t bytes) { return fill(to, value, bytes, nullptr); }
Status cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) { return fill(to, value, bytes, stream); }

// The device's one memory pool. It caches nothing: reserved and used bytes are equal.
Status cudaDeviceGetDefaultMemPool(void** pool, int) {
  *pool = &DryDevice::get();
  return done(kSuccess);
}
Status cudaDeviceGetMemPool(void** pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
Status cudaMemPoolGetAttribute(void*, int attribute, void* value) {
  // cudaMemPoolAttr. 1 to 3 are of type int; 5 to 8 are reserved bytes now and at most, and used bytes now and at most.
  constexpr int kLastInt = 3, kReserved = 5, kUsed = 7;
  const DeviceMemory& memory = DryDevice::get().memory();
  std::uint64_t bytes = 0;
  if (const auto mark = mark_of(attribute))
    bytes = memory.most_in_use(*mark);
  else if (attribute == kReserved || attribute == kUsed)
    bytes = memory.in_use();
  std::memcpy(value, &bytes, attribute <= kLastInt ? sizeof(int) : sizeof bytes);
  return done(kSuccess);
}
Status cudaMemPoolSetAttribute(void*, int attribute, void* value) {
  const auto mark = mark_of(attribute);
  if (!mark) return done(kSuccess);
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, value, sizeof wanted);
  if (wanted != 0) return done(kInvalidValue);
  DryDevice::get().memory().reset_most_in_use(*mark);
  return done(kSuccess);
}
Status cudaMemPoolSetAccess(void*, const void*, std::size_t) { return done(kSuccess); }
Status cudaMemPoolTrimTo(void*, std::size_t) { return done(kSuccess); }
Status cudaDeviceGetGraphMemAttribute(int, int, void* value) {
  const std::uint64_t none = 0;
  std::memcpy(value, &none, sizeof none);
  return done(kSuccess);
}
Status cudaDeviceSetGraphMemAttribute(int, int, void*) { return done(kSuccess); }

// Memory of other processes is refused: there is no device to share.
Status cudaIpcGetMemHandle(void*, void*) {
  not_answered("cudaIpcGetMemHandle");
  return done(kNotSupported);
}
Status cudaIpcOpenMemHandle(void**, const void*, unsigned) { return done(kNotSupported); }
Status cudaIpcCloseMemHandle(void*) { return done(kNotSupported); }

}  // extern "C"
#pragma GCC visibility pop
