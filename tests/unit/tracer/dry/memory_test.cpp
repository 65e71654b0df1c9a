// Device memory without a device: addresses, capacity in pages, and copies, which take no memory of the host for pages
// that have only zeros.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "tests/catch.hpp"
#include "tests/thread_sanitizer.hpp"
#include "tracer/dry/device_memory.hpp"
#include "tracer/dry/top_down.hpp"

namespace tidepool::dry::memory_test {
namespace {

constexpr std::uint64_t kPages = 8;

void* host(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Whether this process has no room for the addresses of a device; then the test must return.
bool lacks_room() { return tests::skipped_by_thread_sanitizer("leaves no room for the addresses of a device"); }

std::size_t resident_host_pages(std::uint64_t address, std::uint64_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  REQUIRE(mincore(host(address), bytes, pages.data()) == 0);
  std::size_t resident = 0;
  for (const unsigned char page : pages) resident += page & 1U;
  return resident;
}

TEST_CASE("device memory counts whole pages and refuses a request that exceeds them by one byte") {
  if (lacks_room()) return;
  DeviceMemory memory{[] { return kPages * kDevicePage; }};
  const auto large = memory.allocate(kDevicePage + 1);  // takes two pages alone
  const auto small = memory.allocate(1);                // takes one page, which later requests share
  const auto same = memory.allocate(kDevicePage / 2);
  REQUIRE((large && small && same));
  CHECK(memory.in_use() == 3 * kDevicePage);
  CHECK(*same == *small + 512);
  CHECK_FALSE(memory.allocate(5 * kDevicePage + 1));
  const auto rest = memory.allocate(5 * kDevicePage);
  REQUIRE(rest);
  CHECK(memory.allocate(1).has_value());  // fits into the shared page
  CHECK(memory.in_use() == memory.capacity());
  CHECK(memory.free(*large));
  CHECK_FALSE(memory.free(*large));
  CHECK_FALSE(memory.free(*rest + 512));
  CHECK(memory.in_use() == 6 * kDevicePage);
  CHECK(memory.allocate(2 * kDevicePage) == large);  // the lowest address is taken first
}

TEST_CASE("device memory remembers the most bytes in use since each mark was reset") {
  if (lacks_room()) return;
  using enum DeviceMemory::Mark;
  DeviceMemory memory{[] { return kPages * kDevicePage; }};
  const auto first = memory.allocate(4 * kDevicePage);
  REQUIRE(first);
  CHECK(memory.free(*first));
  REQUIRE(memory.create(kDevicePage));
  CHECK(memory.most_in_use(kUsed) == 4 * kDevicePage);
  memory.reset_most_in_use(kUsed);
  CHECK(memory.most_in_use(kUsed) == kDevicePage);
  CHECK(memory.allocate(1).has_value());
  CHECK(memory.most_in_use(kUsed) == 2 * kDevicePage);
  CHECK(memory.most_in_use(kReserved) == 4 * kDevicePage);
}

TEST_CASE("placed from the top down, memory takes the lowest hole of the chunks in use, or new chunks of 32 MiB") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  TopDown space{0, 8 * TopDown::kChunk};  // 256 MiB
  const auto take = [&](std::uint64_t size) { return space.take(size * kMiB, kDevicePage).value() / kMiB; };
  CHECK(take(20) == 224);
  CHECK(take(20) == 192);  // does not fit in the 12 MiB behind the first one
  CHECK(take(100) == 64);  // four chunks, up to 192
  CHECK(take(26) == 164);  // behind the 100 MiB
  CHECK(take(26) == 32);
  CHECK(take(2) == 58);  // takes the lowest of four holes
  space.give(64 * kMiB, 100 * kMiB);
  CHECK(take(4) == 60);
  CHECK(take(4) == 160);  // the last of the four chunks is still in use
  CHECK(take(96) == 64);  // the other three chunks are free
  CHECK_FALSE(space.take(33 * kMiB, kDevicePage));
  CHECK(take(32) == 0);
  CHECK(space.take(4 * kMiB, 64 * kMiB) == std::nullopt);

  space.give(0, 160 * kMiB);
  CHECK(space.take(64 * kMiB, 128 * kMiB) == 0);  // the highest multiple of 128 MiB with 64 MiB free from there
}

TEST_CASE("top-down placement refuses 0 B and sizes whose whole chunks exceed all addresses") {
  TopDown space{0, 8 * TopDown::kChunk};
  REQUIRE(space.take(1, kDevicePage) == 7 * TopDown::kChunk);  // leaves a hole
  CHECK(space.take(0, kDevicePage) == std::nullopt);
  for (const std::uint64_t less : {std::uint64_t{1}, kDevicePage, TopDown::kChunk - 1, TopDown::kChunk})
    CHECK(space.take(0 - less, kDevicePage) == std::nullopt);
  CHECK(space.take(7 * TopDown::kChunk, kDevicePage) == 0);  // no addresses were lost
}

TEST_CASE("device memory uses the requested placement, and counts the same pages") {
  if (lacks_room()) return;
  DeviceMemory memory{[] { return kPages * kDevicePage; }, Placement::kTopDown};
  const auto first = memory.allocate(2 * kDevicePage), second = memory.allocate(14 * kDevicePage);
  REQUIRE(first);
  CHECK_FALSE(second);  // more than is left
  CHECK(memory.allocate(2 * kDevicePage) == *first + 2 * kDevicePage);
  CHECK(memory.in_use() == 4 * kDevicePage);
  CHECK(memory.free(*first));
  CHECK(memory.in_use() == 2 * kDevicePage);
}

TEST_CASE("a device address is found only if it lies inside an allocation") {
  if (lacks_room()) return;
  DeviceMemory memory{[] { return kPages * kDevicePage; }};
  const auto a = memory.allocate(3000);
  REQUIRE(a);
  REQUIRE(memory.find(*a + 2999));
  CHECK(memory.find(*a + 2999)->address == *a);
  CHECK(memory.find(*a + 2999)->bytes == 3072);
  CHECK_FALSE(memory.find(*a + 3072));
  CHECK(memory.owns(*a + 3072));
  int here = 0;
  CHECK_FALSE(memory.owns(reinterpret_cast<std::uint64_t>(&here)));
}

TEST_CASE("mapped memory counts while a handle or a mapping refers to it") {
  if (lacks_room()) return;
  DeviceMemory memory{[] { return kPages * kDevicePage; }};
  const auto addresses = memory.reserve(100 * kDevicePage, 0);  // reserved addresses take no memory
  REQUIRE(addresses);
  CHECK(memory.in_use() == 0);
  const auto handle = memory.create(2 * kDevicePage);
  REQUIRE(handle);
  CHECK(memory.map(*addresses + kDevicePage, 2 * kDevicePage, *handle));
  CHECK_FALSE(memory.map(*addresses, 2 * kDevicePage, *handle));  // would overlap the mapping
  CHECK_FALSE(memory.map(*addresses + 2 * kDevicePage, 2 * kDevicePage, *handle));
  CHECK_FALSE(memory.map(*addresses + 99 * kDevicePage, 2 * kDevicePage, *handle));  // would end beyond the reservation
  CHECK(memory.release(*handle));
  CHECK(memory.in_use() == 2 * kDevicePage);
  CHECK(memory.handle_at(*addresses + 2 * kDevicePage) == handle);
  CHECK(memory.release(*handle));
  CHECK(memory.unmap(*addresses + kDevicePage, 2 * kDevicePage));
  CHECK(memory.in_use() == 0);
  CHECK_FALSE(memory.release(*handle));
  CHECK_FALSE(memory.create(kPages * kDevicePage + kDevicePage));
  CHECK(memory.unreserve(*addresses));
}

TEST_CASE("a copy to the device keeps only pages with bytes other than 0, and a copy back gives the same bytes") {
  if (lacks_room()) return;
  DeviceMemory memory{[] { return kPages * kDevicePage; }};
  const auto to = memory.allocate(2 * kDevicePage);
  REQUIRE(to);
  std::vector<char> from(2 * kDevicePage, 0), back(from.size(), 1);
  for (const std::size_t at : {std::size_t{0}, std::size_t{700'000}, from.size() - 1})
    from[at] = static_cast<char>(at + 7);
  std::memset(host(*to), 9, from.size());
  copy_bytes(host(*to), from.data(), from.size(), true);
  CHECK(resident_host_pages(*to, from.size()) == 3);
  copy_bytes(back.data(), host(*to), from.size(), false);
  CHECK(back == from);
  const std::uint64_t odd = *to + 123;  // pages that the copy covers only partly are written
  std::memset(host(*to), 9, from.size());
  copy_bytes(host(odd), from.data() + 1, 400'000, true);
  CHECK(static_cast<char*>(host(odd))[-1] == 9);
  CHECK(static_cast<char*>(host(odd))[0] == 0);
  CHECK(static_cast<char*>(host(odd))[399'999] == 0);
  CHECK(static_cast<char*>(host(odd))[400'000] == 9);
  fill_bytes(host(odd), 0, 500'000);
  CHECK(static_cast<char*>(host(odd))[-1] == 9);
  CHECK(static_cast<char*>(host(odd))[499'999] == 0);
  CHECK(static_cast<char*>(host(odd))[500'000] == 9);
}

}  // namespace
}  // namespace tidepool::dry::memory_test
