#include "validator/live/planned_allocator.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tidepool::planned_allocator_test {

namespace {

/// Host memory that records the waits of streams, and can run out.
class CountedMemory final : public MemorySource {
 public:
  void* take(Bytes size) override {
    if (size > left) return nullptr;
    left -= size;
    return host_.take(size);
  }
  void give(void* memory, Bytes size) override {
    left += size;
    host_.give(memory, size);
  }
  void order(LiveStream before, LiveStream after) override { orders.emplace_back(before, after); }

  Bytes left = kNoLimit;
  std::vector<std::pair<LiveStream, LiveStream>> orders;

 private:
  HeapMemory host_;
};

const int streams[2] = {};
const LiveStream kFirst = &streams[0], kSecond = &streams[1];

/// Two weights from before the step, then a step of eight requests of different sizes. Each is at 512 * its position.
LayoutFile layout() {
  LayoutFile file;
  file.alignment = 512_B;
  file.existing = 2;
  for (int i = 0; i < 10; ++i) file.requests.push_back({Bytes{100 + i}, Bytes{512 * i}});
  file.height = file.lower_bound = Bytes{512 * 10};
  return file;
}

/// A job whose requests are given by their sizes. Offsets count from the place of its first request.
class Job {
 public:
  explicit Job(PlannedAllocator& allocator) : allocator_{allocator} {}

  std::int64_t ask(int size) {
    auto* memory = static_cast<std::byte*>(allocator_.allocate(Bytes{size}, kFirst));
    if (!origin_) origin_ = memory;
    live_[size] = memory;
    return memory - origin_;
  }
  void free(int size) { allocator_.free(std::exchange(live_[size], nullptr)); }
  void step() {
    for (int i = 2; i < 10; ++i) ask(100 + i);
    for (int i = 2; i < 10; ++i) free(100 + i);
  }
  void free_all() {
    for (auto& [size, memory] : live_) allocator_.free(std::exchange(memory, nullptr));
  }

 private:
  PlannedAllocator& allocator_;
  std::byte* origin_ = nullptr;
  std::map<int, std::byte*> live_;
};

}  // namespace

TEST_CASE("a live job gets planned places, step after step") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  Job job{allocator};
  CHECK(job.ask(100) == 0);
  CHECK(job.ask(101) == 512);
  for (int step = 0; step < 3; ++step) {
    for (int i = 2; i < 10; ++i) CHECK(job.ask(100 + i) == 512 * i);
    for (int i = 2; i < 10; ++i) job.free(100 + i);
  }
  const PlannedAllocator::Report report = allocator.report();
  CHECK(report.places.planned == 2 + 3 * 8);
  CHECK(report.places.fallback == 0);
  CHECK(report.outside == 0);
  CHECK(report.arena == Bytes{5120 + 4096});
  job.free_all();
}

TEST_CASE("buffers from before the step get their places in any order of allocation") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  Job job{allocator};
  CHECK(job.ask(101) == 0);  // the second weight is allocated first
  CHECK(job.ask(100) == -512);
  job.step();
  CHECK(allocator.report().places.fallback == 0);
  job.free_all();
}

TEST_CASE("after a step that deviates from the plan, the next one gets its planned places again") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  Job job{allocator};
  job.ask(100);
  job.ask(101);
  job.step();
  job.ask(102);
  CHECK(job.ask(999) == 5120);  // not planned: placed in the fallback region
  for (const int size : {103, 105, 106}) CHECK(job.ask(size) == 512 * (size - 100));  // the job skips 104
  for (const int size : {102, 999, 103, 105, 106}) job.free(size);
  for (int i = 2; i < 10; ++i) CHECK(job.ask(100 + i) == 512 * i);
  CHECK(allocator.report().places.fallback == 1);
  CHECK(allocator.report().resynchronised > 0);
  job.free_all();
}

TEST_CASE("requests that do not fit in the arena, and those of other streams, get separate memory") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 0_B, memory};
  void* weight = allocator.allocate(100_B, kFirst);
  const Bytes with_arena = memory.left;
  void* large = allocator.allocate(1_MiB, kFirst);
  void* other = allocator.allocate(101_B, kSecond);
  CHECK(with_arena - memory.left == 1_MiB + 101_B);
  CHECK(allocator.report().outside == 2);
  allocator.free(large);
  allocator.free(other);
  CHECK(memory.left == with_arena);
  CHECK(allocator.report().outside_peak == 1_MiB + 101_B);
  allocator.free(weight);
  allocator.free(weight);
  CHECK(allocator.report().unknown_frees == 1);
  CHECK(allocator.allocate(0_B, kFirst) == nullptr);
}

TEST_CASE("a first request of another device does not decide the arena's stream") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 0_B, memory};
  const Bytes all = memory.left;
  void* other = allocator.allocate_outside(101_B, kSecond);
  CHECK(all - memory.left == 101_B);
  void* weight = allocator.allocate(100_B, kFirst);
  CHECK(allocator.report().outside == 1);
  CHECK(allocator.report().places.planned == 1);
  allocator.free(weight);
  allocator.free(other);
  CHECK(allocator.allocate_outside(0_B, kSecond) == nullptr);
}

TEST_CASE("without memory for the arena the job continues, and without any memory it gets an error") {
  CountedMemory memory;
  memory.left = 1_KiB;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  void* small = allocator.allocate(100_B, kFirst);
  CHECK(small != nullptr);
  CHECK(allocator.report().arena == 0_B);
  CHECK(allocator.allocate(2_KiB, kFirst) == nullptr);
  CHECK(allocator.report().failed == 1);
  allocator.free(small);
}

TEST_CASE("a block that another stream has used is given to the next request only after that stream's work") {
  CountedMemory memory;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  void* block = allocator.allocate(100_B, kFirst);
  allocator.record_use(block, kFirst);
  allocator.record_use(block, kSecond);
  allocator.record_use(block, kSecond);
  CHECK(memory.orders.empty());
  allocator.free(block);
  CHECK(memory.orders == std::vector<std::pair<LiveStream, LiveStream>>{{kSecond, kFirst}});
}

TEST_CASE("a layout that is larger than any memory, or whose places are not aligned for kernels, is refused") {
  HeapMemory memory;
  LayoutFile file = layout();
  file.requests.back().offset = kNoLimit;
  CHECK_THROWS_WITH((PlannedAllocator{file, 4_KiB, memory}),
                    "a height, size, offset, alignment or fallback region of 4611686018427387904 B; expected at most "
                    "1125899906842624 B");
  file = layout();
  file.alignment = 48_B;
  CHECK_THROWS_WITH((PlannedAllocator{file, 4_KiB, memory}),
                    "a layout aligned to 48 B; expected a multiple of 256 B, the alignment that kernels need");
  file = layout();
  file.requests[1].offset = 612_B;
  CHECK_THROWS_WITH((PlannedAllocator{file, 4_KiB, memory}),
                    "a layout with a place at 612 B; expected a multiple of 256 B, the alignment that kernels need");
}

TEST_CASE("a layout without requests needs an alignment for kernels only if there is a fallback region") {
  HeapMemory memory;
  CHECK_THROWS_WITH((PlannedAllocator{LayoutFile{}, 64_MiB, memory}),
                    "a layout aligned to 1 B; expected a multiple of 256 B, the alignment that kernels need");
  PlannedAllocator allocator{LayoutFile{}, 0_B, memory};
  allocator.free(allocator.allocate(100_B, kFirst));
  CHECK(allocator.report().outside == 1);
}

TEST_CASE("concurrent requests of any size never share a byte") {
  HeapMemory memory;
  PlannedAllocator allocator{layout(), 4_KiB, memory};
  std::atomic<int> damaged = 0;
  const auto work = [&](unsigned seed) {
    std::mt19937 random{seed};
    std::vector<std::pair<unsigned char*, std::size_t>> live;
    const auto end = [&](std::size_t which) {
      const auto [bytes, size] = live[which];
      const auto mark = static_cast<unsigned char>(size + seed);
      if (!std::all_of(bytes, bytes + size, [&](unsigned char byte) { return byte == mark; })) ++damaged;
      allocator.free(bytes);
      live[which] = live.back();
      live.pop_back();
    };
    for (int i = 0; i < 3000; ++i) {
      const std::size_t size = random() % 4 == 0 ? 1 + random() % 3000 : 100 + random() % 10;
      auto* bytes = static_cast<unsigned char*>(allocator.allocate(Bytes{static_cast<std::int64_t>(size)}, kFirst));
      std::memset(bytes, static_cast<unsigned char>(size + seed), size);
      live.emplace_back(bytes, size);
      if (live.size() > 6) end(random() % live.size());
    }
    while (!live.empty()) end(live.size() - 1);
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  }
  CHECK(damaged == 0);
  const PlannedAllocator::Report report = allocator.report();
  CHECK(report.places.planned + report.places.fallback + report.outside == 4 * 3000);
  CHECK(report.unknown_frees == 0);
}

TEST_CASE("a request without memory is an error in PyTorch, which would otherwise use the address 0") {
  setenv("TIDEPOOL_LAYOUT_DEVICE", "none", 1);  // leaves the allocator without a source of memory
  const std::string path = std::filesystem::path{paths::program()}.replace_filename("python/libtidepool_allocator.so");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto alloc = reinterpret_cast<void* (*)(ssize_t, int, void*)>(dlsym(library, "tidepool_alloc"));
  REQUIRE(alloc != nullptr);
  CHECK(alloc(0, 0, nullptr) == nullptr);
  CHECK_THROWS_WITH(alloc(4096, 0, nullptr),
                    "CUDA out of memory: tidepool's allocator has no 4 KiB left in its layout, and the device has none "
                    "outside of it: {}");
  unsetenv("TIDEPOOL_LAYOUT_DEVICE");
}

}  // namespace tidepool::planned_allocator_test
