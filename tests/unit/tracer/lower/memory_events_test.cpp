#include "tracer/lower/memory_events.hpp"

#include <cstdint>
#include <ctime>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::memory_events_test {

namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t page(std::uint64_t number) { return (number + 1) * kPage; }

raw::Vmm mapping(std::int64_t time, std::uint64_t number) {
  raw::Vmm record;
  record.time = time;
  record.operation = raw::VmmOperation::kMap;
  record.address = page(number);
  record.size = kPage;
  return record;
}

raw::FrameworkMemory tensor(std::int64_t time, std::uint64_t number, std::uint64_t pages) {
  raw::FrameworkMemory record;
  record.time = time;
  record.action = raw::Action::kExisting;
  record.address = page(number);
  record.size = pages * kPage;
  return record;
}

/// The number of buffers that are mapped pages, not tensors.
/// @param tensors  the number of tensors that the framework reports
std::size_t pages_that_are_buffers(const raw::Log& log, std::size_t tensors) {
  return memory_events(by_process({&log, 1})[0], false).size() - tensors;
}

}  // namespace

TEST_CASE("tensors over many mapped pages are not compared with each page") {
  // A comparison of each tensor with each page would take 2.5 billion steps: many seconds on any processor.
  constexpr std::uint64_t kCount = 50'000;
  raw::Log log;
  for (std::uint64_t i = 0; i < kCount; ++i) log.add(mapping(1, i));
  for (std::uint64_t i = 0; i < kCount; ++i) log.add(tensor(2, 0, kCount));
  const std::clock_t before = std::clock();
  CHECK(pages_that_are_buffers(log, kCount) == 0);
  CHECK(std::clock() - before < 3 * CLOCKS_PER_SEC);
}

TEST_CASE("a page that is mapped again is a buffer until a tensor is inside") {
  raw::Log log;
  for (std::uint64_t i = 0; i < 3; ++i) log.add(mapping(1, i));
  log.add(tensor(2, 0, 3));
  raw::Vmm unmap = mapping(3, 1);
  unmap.operation = raw::VmmOperation::kUnmap;
  log.add(unmap);
  log.add(mapping(4, 1));
  CHECK(pages_that_are_buffers(log, 1) == 1);
  log.add(tensor(5, 0, 3));
  CHECK(pages_that_are_buffers(log, 2) == 0);
}

}  // namespace tidepool::memory_events_test
