// Device memory without a device: addresses, capacity in pages, and copies that cost nothing if no bytes were written.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "tests/catch.hpp"
#include "tracer/dry/device_memory.hpp"
#include "tracer/dry/top_down.hpp"

namespace tidepool::dry {
namespace {

constexpr std::uint64_t kPages = 8;

void* host(std::uint64_t address) { return reinterpret_cast<void*>(address); }

std::size_t resident_host_pages(std::uint64_t address, std::uint64_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  REQUIRE(mincore(host(address), bytes, pages.data()) == 0);
  std::size_t resident = 0;
  for (const unsigned char page : pages) resident += page & 1U;
  return resident;
}

TEST_CASE("device memory counts whole pages and refuses the first byte too many") {
  DeviceMemory memory{kPages * kDevicePage};
  const auto large = memory.allocate(kDevicePage + 1);  // two pages of its own
  const auto small = memory.allocate(1);                // one page, shared from now on
  const auto same = memory.allocate(kDevicePage / 2);
  REQUIRE((large && small && same));
  CHECK(memory.in_use() == 3 * kDevicePage);
  CHECK(*same == *small + 512);
  CHECK_FALSE(memory.allocate(5 * kDevicePage + 1));
  const auto rest = memory.allocate(5 * kDevicePage);
  REQUIRE(rest);
  CHECK(memory.allocate(1).has_value());  // the shared page still has room
  CHECK(memory.in_use() == memory.capacity());
  CHECK(memory.free(*large));
  CHECK_FALSE(memory.free(*large));
  CHECK_FALSE(memory.free(*rest + 512));
  CHECK(memory.in_use() == 6 * kDevicePage);
  CHECK(memory.allocate(2 * kDevicePage) == large);  // lowest address first
}

TEST_CASE("placed from the top down, memory lies in chunks of 32 MiB and in the lowest hole of those in use") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  TopDown space{0, 8 * TopDown::kChunk};  // 256 MiB
  const auto take = [&](std::uint64_t size) { return space.take(size * kMiB, kDevicePage).value() / kMiB; };
  CHECK(take(20) == 224);
  CHECK(take(20) == 192);  // not in the 12 MiB that the first one left
  CHECK(take(100) == 64);  // four chunks, up to 192
  CHECK(take(26) == 164);  // behind it
  CHECK(take(26) == 32);
  CHECK(take(2) == 58);  // in the lowest of four holes
  space.give(64 * kMiB, 100 * kMiB);
  CHECK(take(4) == 60);
  CHECK(take(4) == 160);  // the fourth chunk is still in use
  CHECK(take(96) == 64);  // the other three are not
  CHECK_FALSE(space.take(33 * kMiB, kDevicePage));
  CHECK(take(32) == 0);
  CHECK(space.take(4 * kMiB, 64 * kMiB) == std::nullopt);

  space.give(0, 160 * kMiB);
  CHECK(space.take(64 * kMiB, 128 * kMiB) == 0);  // the highest free multiple of 128 MiB with so much behind it
}

TEST_CASE("from the top down, requests of 0 B and of more than all addresses in whole chunks are refused") {
  TopDown space{0, 8 * TopDown::kChunk};
  REQUIRE(space.take(1, kDevicePage) == 7 * TopDown::kChunk);  // leaves a hole
  CHECK(space.take(0, kDevicePage) == std::nullopt);
  for (const std::uint64_t less : {std::uint64_t{1}, kDevicePage, TopDown::kChunk - 1, TopDown::kChunk})
    CHECK(space.take(0 - less, kDevicePage) == std::nullopt);
  CHECK(space.take(7 * TopDown::kChunk, kDevicePage) == 0);  // nothing was lost
}

TEST_CASE("device memory is placed as asked, and counts the same") {
  DeviceMemory memory{kPages * kDevicePage, Placement::kTopDown};
  const auto first = memory.allocate(2 * kDevicePage), second = memory.allocate(14 * kDevicePage);
  REQUIRE(first);
  CHECK_FALSE(second);  // more than there is
  CHECK(memory.allocate(2 * kDevicePage) == *first + 2 * kDevicePage);
  CHECK(memory.in_use() == 4 * kDevicePage);
  CHECK(memory.free(*first));
  CHECK(memory.in_use() == 2 * kDevicePage);
}

TEST_CASE("device addresses are found from inside their allocation only") {
  DeviceMemory memory{kPages * kDevicePage};
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
  DeviceMemory memory{kPages * kDevicePage};
  const auto addresses = memory.reserve(100 * kDevicePage, 0);  // addresses are not memory
  REQUIRE(addresses);
  CHECK(memory.in_use() == 0);
  const auto handle = memory.create(2 * kDevicePage);
  REQUIRE(handle);
  CHECK(memory.map(*addresses + kDevicePage, 2 * kDevicePage, *handle));
  CHECK_FALSE(memory.map(*addresses, 2 * kDevicePage, *handle));  // would overlap
  CHECK_FALSE(memory.map(*addresses + 2 * kDevicePage, 2 * kDevicePage, *handle));
  CHECK_FALSE(memory.map(*addresses + 99 * kDevicePage, 2 * kDevicePage, *handle));  // past the reservation
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

TEST_CASE("copies to the device write the memory that the stand-in has, and copies back give zeros") {
  DeviceMemory memory{kPages * kDevicePage};
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
  const std::uint64_t odd = *to + 123;  // pages only partly covered are written
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
}  // namespace tidepool::dry
