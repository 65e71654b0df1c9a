#include "tracer/dry/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

#include "tracer/dry/top_down.hpp"

namespace tidepool::dry {
namespace {

// Far below programs, libraries and stacks, so that the address is the same in every run unless it is taken.
constexpr std::uint64_t kFirstAddress = 0x2000'0000'0000;
constexpr std::uint64_t kAlignment = 512;  // B; of small allocations, as cudaMalloc places them
constexpr std::size_t kHostPage = 4096;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::uint64_t reserve_addresses(std::uint64_t bytes) {
  void* const wish = reinterpret_cast<void*>(kFirstAddress);
  void* const got = mmap(wish, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "reserving device addresses"};
  madvise(got, bytes, MADV_NOHUGEPAGE);  // with huge pages, one written value would cost 2 MiB of the host
  madvise(got, bytes, MADV_DONTDUMP);
  return round_up(reinterpret_cast<std::uint64_t>(got), kDevicePage);
}

bool all_zero(const char* bytes, std::size_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

void give_back(std::uint64_t address, std::uint64_t bytes) {
  madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED);
}

std::unique_ptr<AddressSpace> address_space(Placement placement, std::uint64_t first, std::uint64_t bytes) {
  if (placement == Placement::kTopDown) return std::make_unique<TopDown>(first, bytes);
  return std::make_unique<FirstFit>(first, bytes);
}

}  // namespace

DeviceMemory::DeviceMemory(std::function<std::uint64_t()> capacity, Placement placement)
    : find_capacity_{std::move(capacity)},
      base_{reserve_addresses(kAddressSpace + kDevicePage)},
      small_{base_, kSmallSpace},
      large_{address_space(placement, base_ + kSmallSpace, kAddressSpace - kSmallSpace)} {}

DeviceMemory::~DeviceMemory() { munmap(reinterpret_cast<void*>(base_), kAddressSpace); }

std::uint64_t DeviceMemory::known_capacity() const {
  if (!capacity_) capacity_ = find_capacity_() / kDevicePage * kDevicePage;
  return *capacity_;
}

std::uint64_t DeviceMemory::capacity() const {
  const std::lock_guard lock{mutex_};
  return known_capacity();
}

void DeviceMemory::count(std::uint64_t bytes) {
  used_ += bytes;
  for (std::uint64_t& most : most_used_) most = std::max(most, used_);
}

std::optional<std::uint64_t> DeviceMemory::allocate_small(std::uint64_t bytes) {
  const auto address = small_.take(bytes, kAlignment);
  if (!address) return std::nullopt;
  const std::uint64_t first = *address / kDevicePage, last = (*address + bytes - 1) / kDevicePage;
  std::uint64_t fresh = 0;
  for (std::uint64_t page = first; page <= last; ++page) fresh += small_pages_.contains(page) ? 0 : kDevicePage;
  if (!fits(fresh)) {
    small_.give(*address, bytes);
    return std::nullopt;
  }
  for (std::uint64_t page = first; page <= last; ++page) ++small_pages_[page];
  count(fresh);
  return address;
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  if (bytes == 0 || bytes > known_capacity()) return std::nullopt;
  const bool small = bytes < kDevicePage;
  const std::uint64_t size = round_up(bytes, small ? kAlignment : kDevicePage);
  if (!small && !fits(size)) return std::nullopt;
  const auto address = small ? allocate_small(size) : large_->take(size, kDevicePage);
  if (!address) return std::nullopt;
  if (!small) count(size);
  live_.emplace(*address, Mapping{size, 0});
  return address;
}

bool DeviceMemory::free(std::uint64_t address) {
  const std::lock_guard lock{mutex_};
  const auto found = live_.find(address);
  if (found == live_.end() || found->second.handle != 0) return false;
  const std::uint64_t bytes = found->second.bytes;
  live_.erase(found);
  if (address >= base_ + kSmallSpace) {
    give_back(address, bytes);
    large_->give(address, bytes);
    used_ -= bytes;
    return true;
  }
  small_.give(address, bytes);
  for (std::uint64_t page = address / kDevicePage; page <= (address + bytes - 1) / kDevicePage; ++page)
    if (--small_pages_[page] == 0) {
      small_pages_.erase(page);
      give_back(page * kDevicePage, kDevicePage);
      used_ -= kDevicePage;
    }
  return true;
}

std::optional<std::uint64_t> DeviceMemory::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  const std::lock_guard lock{mutex_};
  if (bytes == 0 || bytes % kDevicePage != 0 || (alignment & (alignment - 1)) != 0) return std::nullopt;
  const auto address = large_->take(bytes, std::max(alignment, kDevicePage));
  if (address) reservations_.emplace(*address, bytes);
  return address;
}

bool DeviceMemory::unreserve(std::uint64_t address) {
  const std::lock_guard lock{mutex_};
  const auto found = reservations_.find(address);
  if (found == reservations_.end()) return false;
  large_->give(found->first, found->second);
  reservations_.erase(found);
  return true;
}

std::optional<std::uint64_t> DeviceMemory::create(std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  if (bytes == 0 || bytes % kDevicePage != 0 || !fits(bytes)) return std::nullopt;
  count(bytes);
  physical_.emplace(++last_handle_, Physical{bytes, 1});
  return last_handle_;
}

void DeviceMemory::drop(std::uint64_t handle) {
  const auto found = physical_.find(handle);
  if (--found->second.references != 0) return;
  used_ -= found->second.bytes;
  physical_.erase(found);
}

bool DeviceMemory::release(std::uint64_t handle) {
  const std::lock_guard lock{mutex_};
  if (!physical_.contains(handle)) return false;
  drop(handle);
  return true;
}

bool DeviceMemory::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) {
  const std::lock_guard lock{mutex_};
  const auto memory = physical_.find(handle);
  auto within = reservations_.upper_bound(address);
  if (memory == physical_.end() || memory->second.bytes != bytes || within == reservations_.begin()) return false;
  --within;
  const std::uint64_t offset = address - within->first;
  if (offset > within->second || bytes > within->second - offset) return false;
  const auto next = live_.lower_bound(address);
  if (next != live_.end() && next->first < address + bytes) return false;
  if (next != live_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > address) return false;
  }
  ++memory->second.references;
  live_.emplace(address, Mapping{bytes, handle});
  return true;
}

bool DeviceMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  auto mapping = live_.lower_bound(address);
  bool any = false;
  while (mapping != live_.end() && mapping->first + mapping->second.bytes <= address + bytes &&
         mapping->second.handle != 0) {
    give_back(mapping->first, mapping->second.bytes);
    drop(mapping->second.handle);
    mapping = live_.erase(mapping);
    any = true;
  }
  return any;
}

std::optional<std::uint64_t> DeviceMemory::handle_at(std::uint64_t address) {
  const std::lock_guard lock{mutex_};
  auto mapping = live_.upper_bound(address);
  if (mapping == live_.begin()) return std::nullopt;
  --mapping;
  if (address - mapping->first >= mapping->second.bytes || mapping->second.handle == 0) return std::nullopt;
  ++physical_[mapping->second.handle].references;
  return mapping->second.handle;
}

std::optional<DeviceRange> DeviceMemory::find(std::uint64_t address) const {
  if (!owns(address)) return std::nullopt;
  const std::lock_guard lock{mutex_};
  auto found = live_.upper_bound(address);
  if (found == live_.begin()) return std::nullopt;
  --found;
  if (address - found->first >= found->second.bytes) return std::nullopt;
  return DeviceRange{found->first, found->second.bytes};
}

std::uint64_t DeviceMemory::in_use() const {
  const std::lock_guard lock{mutex_};
  return used_;
}

std::uint64_t DeviceMemory::most_in_use(Mark mark) const {
  const std::lock_guard lock{mutex_};
  return most_used_[static_cast<std::size_t>(mark)];
}

void DeviceMemory::reset_most_in_use(Mark mark) {
  const std::lock_guard lock{mutex_};
  most_used_[static_cast<std::size_t>(mark)] = used_;
}

void copy_bytes(void* to, const void* from, std::size_t bytes, bool to_device) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (!to_device || bytes < 16 * kHostPage) {
    std::memmove(target, source, bytes);
    return;
  }
  const std::size_t head =
      std::min(bytes, (kHostPage - reinterpret_cast<std::uintptr_t>(target) % kHostPage) % kHostPage);
  std::memmove(target, source, head);
  std::size_t at = head;
  for (; bytes - at >= kHostPage;) {  // runs of zero pages are given back in one call
    std::size_t run = 0;
    while (bytes - at - run >= kHostPage && all_zero(source + at + run, kHostPage)) run += kHostPage;
    if (run != 0) give_back(reinterpret_cast<std::uint64_t>(target + at), run);
    at += run;
    if (bytes - at < kHostPage) break;
    if (run == 0) {
      std::memmove(target + at, source + at, kHostPage);
      at += kHostPage;
    }
  }
  std::memmove(target + at, source + at, bytes - at);
}

void fill_bytes(void* to, unsigned char value, std::size_t bytes) {
  if (value != 0 || bytes < 2 * kHostPage) {
    std::memset(to, value, bytes);
    return;
  }
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(to), last = first + bytes;
  const std::uint64_t whole = round_up(first, kHostPage), end = last / kHostPage * kHostPage;
  std::memset(to, 0, whole - first);
  give_back(whole, end - whole);
  std::memset(reinterpret_cast<void*>(end), 0, last - end);
}

}  // namespace tidepool::dry
