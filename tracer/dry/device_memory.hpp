// Memory of the dry device: its addresses and its capacity, backed by untouched pages of the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "tracer/dry/first_fit.hpp"

namespace tidepool::dry {

/// Physical memory is handed out in pages of this size, as on every NVIDIA device since Pascal.
inline constexpr std::uint64_t kDevicePage = std::uint64_t{2} << 20;

/// The placement of allocations of a page or more.
enum class Placement : std::uint8_t {
  kLowestFirst,  ///< the lowest free address, so that allocations lie side by side
  kTopDown,      ///< in chunks from the top (top_down.hpp)
};

/// A live range of device addresses.
struct DeviceRange {
  std::uint64_t address = 0, bytes = 0;
};

/// Device memory backed by one reservation of host addresses, so that copies from and to it really work; a page of the
/// host is taken only once something is written to it. Thread safe. All sizes in bytes.
///
/// Memory is counted as a device counts it: in whole pages of 2 MiB. Requests of less than a page share pages; all
/// others get pages of their own. The same requests get the same addresses in every run in which the host has the
/// address range free.
class DeviceMemory {
 public:
  /// @param capacity  gives the bytes that programs can allocate, without those that the driver's context keeps; called
  ///                  when they are first asked for, and rounded down to whole pages
  /// @throws std::system_error if the host refuses the address range
  explicit DeviceMemory(std::function<std::uint64_t()> capacity, Placement placement = Placement::kLowestFirst);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// As cudaMalloc. @return  the address; none for 0 bytes, or if the device is out of memory
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  /// As cudaFree. @return  false if no allocation begins at the address
  bool free(std::uint64_t address);

  /// Virtual memory management, as by cuMemAddressReserve, cuMemCreate and cuMemMap: addresses without memory, memory
  /// without addresses, and mappings of memory to addresses. None or false: a wrong argument, or no room.
  std::optional<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t alignment);
  bool unreserve(std::uint64_t address);
  std::optional<std::uint64_t> create(std::uint64_t bytes);  ///< a handle; none if the device is out of memory
  bool release(std::uint64_t handle);
  bool map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle);
  bool unmap(std::uint64_t address, std::uint64_t bytes);
  std::optional<std::uint64_t> handle_at(
      std::uint64_t address);  ///< of the memory mapped there, which gets one more reference; none: no memory

  /// The live allocation or mapping that holds `address`.
  std::optional<DeviceRange> find(std::uint64_t address) const;
  /// Whether `address` is one of the device's, live or not.
  bool owns(std::uint64_t address) const { return address - base_ < kAddressSpace; }
  std::uint64_t capacity() const;
  std::uint64_t in_use() const;  ///< bytes of the capacity that are taken, in whole pages
  /// The most bytes in use since the beginning, or since the mark was reset. Each mark is reset alone; kEver never is.
  enum class Mark : std::uint8_t { kReserved, kUsed, kEver };
  std::uint64_t most_in_use(Mark mark) const;
  void reset_most_in_use(Mark mark);
  /// Locks the memory: calls of other threads wait until the lock is released.
  std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }

 private:
  static constexpr std::uint64_t kAddressSpace = std::uint64_t{32} << 40;
  static constexpr std::uint64_t kSmallSpace = std::uint64_t{1} << 40;

  struct Physical {
    std::uint64_t bytes = 0;
    int references = 0;
  };
  struct Mapping {
    std::uint64_t bytes = 0, handle = 0;  ///< handle 0: an allocation of its own
  };

  std::optional<std::uint64_t> allocate_small(std::uint64_t bytes);
  std::uint64_t known_capacity() const;
  bool fits(std::uint64_t bytes) const { return bytes <= known_capacity() - used_; }
  void count(std::uint64_t bytes);  ///< adds to the bytes in use
  void drop(std::uint64_t handle);

  mutable std::mutex mutex_;
  std::function<std::uint64_t()> find_capacity_;
  mutable std::optional<std::uint64_t> capacity_;
  std::uint64_t base_, used_ = 0, last_handle_ = 0;
  std::array<std::uint64_t, 3> most_used_{};  ///< by mark
  FirstFit small_;
  std::unique_ptr<AddressSpace> large_;
  std::map<std::uint64_t, Mapping> live_;
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::unordered_map<std::uint64_t, Physical> physical_;
  std::unordered_map<std::uint64_t, int> small_pages_;  ///< allocations in each shared page
};

/// Copies `bytes`. With `to_device`, the destination lies in a DeviceMemory; in copies of 64 KiB or more, whole pages
/// of the host that would hold zeros are then given back instead of written, so a copy of unwritten memory takes hardly
/// any host memory. The ranges must be equal or disjoint.
void copy_bytes(void* to, const void* from, std::size_t bytes, bool to_device);
/// Fills device memory with one byte. For 8 KiB of zeros or more, whole pages of the host are given back instead.
void fill_bytes(void* to, unsigned char value, std::size_t bytes);

}  // namespace tidepool::dry
