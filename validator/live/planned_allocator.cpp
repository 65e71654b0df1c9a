#include "validator/live/planned_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr Bytes kMost{std::int64_t{1} << 50};  // more than any device has; sums of such sizes do not overflow

constexpr std::int64_t kAlignment = 256;  // B; cudaMalloc aligns to at least this

/// The size of the whole arena; requests without a place in it get other memory.
Bytes arena_size(const LayoutFile& layout, Bytes fallback) {
  return round_up(layout.height, layout.alignment) + round_up(fallback, layout.alignment);
}

LayoutFile require_servable(LayoutFile layout, Bytes fallback) {
  Bytes most = std::max({layout.height, layout.alignment, fallback});
  for (const PlannedRequest& request : layout.requests) most = std::max({most, request.size, request.offset});
  if (most > kMost)
    throw InputError{fmt::format("a height, size, offset, alignment or fallback region of {} B; expected at most {} B",
                                 most.count(), kMost.count())};
  if (arena_size(layout, fallback) == Bytes{}) return layout;  // no request gets a place
  if (layout.alignment.count() % kAlignment != 0)
    throw InputError{
        fmt::format("a layout aligned to {} B; expected a multiple of {} B, the alignment that kernels need",
                    layout.alignment.count(), kAlignment)};
  for (const PlannedRequest& request : layout.requests)
    if (request.offset.count() % kAlignment != 0)
      throw InputError{
          fmt::format("a layout with a place at {} B; expected a multiple of {} B, the alignment that kernels need",
                      request.offset.count(), kAlignment)};
  return layout;
}

}  // namespace

void* HeapMemory::take(Bytes size) { return std::malloc(static_cast<std::size_t>(size.count())); }

void HeapMemory::give(void* memory, Bytes) { std::free(memory); }

PlannedAllocator::PlannedAllocator(LayoutFile layout, Bytes fallback, MemorySource& source)
    : source_{source}, places_{require_servable(layout, fallback), fallback, arena_size(layout, fallback), true} {
  report_.arena = arena_size(layout, fallback);
}

PlannedAllocator::~PlannedAllocator() {
  if (arena_) source_.give(arena_, report_.arena);
}

void* PlannedAllocator::allocate(Bytes size, LiveStream stream) {
  if (size <= Bytes{}) return nullptr;
  const std::lock_guard lock{mutex_};
  if (!std::exchange(asked_, true)) {
    stream_ = stream;
    arena_ = report_.arena > Bytes{} ? static_cast<std::byte*>(source_.take(report_.arena)) : nullptr;
    if (!arena_) report_.arena = {};
  }
  if (arena_ && stream == stream_)
    if (void* memory = place(size)) return memory;
  return take_outside(size, stream);
}

void* PlannedAllocator::allocate_outside(Bytes size, LiveStream stream) {
  if (size <= Bytes{}) return nullptr;
  const std::lock_guard lock{mutex_};
  return take_outside(size, stream);
}

void* PlannedAllocator::take_outside(Bytes size, LiveStream stream) {
  void* memory = source_.take(size);
  if (!memory) {
    ++report_.failed;
    return nullptr;
  }
  held_[memory] = {.block = {.offset = {}, .size = size}, .in_arena = false, .stream = stream, .users = {}};
  ++report_.outside;
  outside_ += size;
  report_.outside_peak = std::max(report_.outside_peak, outside_);
  return memory;
}

void* PlannedAllocator::place(Bytes size) {
  const std::optional<Block> block = places_.place(size);
  if (!block) return nullptr;
  void* memory = arena_ + block->offset.count();
  held_[memory] = {.block = *block, .in_arena = true, .stream = stream_, .users = {}};
  return memory;
}

void PlannedAllocator::free(void* memory) {
  if (!memory) return;
  const std::lock_guard lock{mutex_};
  const auto found = held_.find(memory);
  if (found == held_.end()) {
    ++report_.unknown_frees;
    return;
  }
  const Held held = std::move(found->second);
  held_.erase(found);
  if (held.in_arena) {
    for (const LiveStream user : held.users) source_.order(user, stream_);
    places_.release(held.block);
  } else {
    outside_ -= held.block.size;
    source_.give(memory, held.block.size);
  }
}

void PlannedAllocator::record_use(void* memory, LiveStream stream) {
  const std::lock_guard lock{mutex_};
  const auto found = held_.find(memory);
  if (found == held_.end() || found->second.stream == stream) return;
  std::vector<LiveStream>& users = found->second.users;
  if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
}

PlannedAllocator::Report PlannedAllocator::report() const {
  const std::lock_guard lock{mutex_};
  Report report = report_;
  report.places = places_.counts();
  report.resynchronised = places_.resynchronised();
  return report;
}

std::string to_json(const PlannedAllocator::Report& report) {
  return fmt::format(
      R"({{"planned":{},"fallback":{},"outside":{},"resynchronised":{},"outside_peak_bytes":{},"arena_bytes":{},)"
      R"("failed":{},"unknown_frees":{}}})",
      report.places.planned, report.places.fallback, report.outside, report.resynchronised, report.outside_peak.count(),
      report.arena.count(), report.failed, report.unknown_frees);
}

}  // namespace tidepool
