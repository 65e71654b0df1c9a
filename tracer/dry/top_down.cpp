#include "tracer/dry/top_down.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tidepool::dry {
namespace {

using Ranges = std::map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t chunk_of(std::uint64_t address) { return address / TopDown::kChunk * TopDown::kChunk; }
constexpr std::uint64_t whole_chunks(std::uint64_t bytes) { return chunk_of(bytes + TopDown::kChunk - 1); }

/// Adds a range and joins it with its neighbours, if they are in [first, last).
void add(Ranges& ranges, std::uint64_t address, std::uint64_t bytes, std::uint64_t first, std::uint64_t last) {
  auto next = ranges.lower_bound(address);
  if (next != ranges.end() && next->first == address + bytes && next->first < last) {
    bytes += next->second;
    next = ranges.erase(next);
  }
  if (next != ranges.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address && before->first >= first) {
      before->second += bytes;
      return;
    }
  }
  ranges.emplace(address, bytes);
}

}  // namespace

TopDown::TopDown(std::uint64_t first, std::uint64_t bytes) {
  const std::uint64_t begin = whole_chunks(first), end = chunk_of(first + bytes);
  if (begin < end) unused_.emplace(begin, end - begin);
}

std::optional<std::uint64_t> TopDown::take(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0 || bytes > UINT64_MAX - kChunk) return std::nullopt;  // rounded up to chunks, it may exceed 64 bits
  auto address = take_hole(bytes, alignment);
  if (!address) address = take_chunks(bytes, alignment);
  if (address) count(*address, bytes);
  return address;
}

std::optional<std::uint64_t> TopDown::take_hole(std::uint64_t bytes, std::uint64_t alignment) {
  const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                 [&](const auto& each) { return each.second >= bytes && each.first % alignment == 0; });
  if (hole == holes_.end()) return std::nullopt;
  const auto [address, size] = *hole;
  holes_.erase(hole);
  if (size > bytes) holes_.emplace(address + bytes, size - bytes);
  return address;
}

std::optional<std::uint64_t> TopDown::take_chunks(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t size = whole_chunks(bytes), unit = std::max(alignment, kChunk);
  for (auto run = unused_.rbegin(); run != unused_.rend(); ++run) {
    const auto [first, free] = *run;
    if (free < size) continue;
    const std::uint64_t address = (first + free - size) / unit * unit;
    if (address < first) continue;
    unused_.erase(first);
    if (address > first) unused_.emplace(first, address - first);
    if (const std::uint64_t above = first + free - address - size; above > 0) unused_.emplace(address + size, above);
    if (size > bytes) holes_.emplace(address + bytes, size - bytes);
    return address;
  }
  return std::nullopt;
}

void TopDown::count(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t chunk = chunk_of(address); chunk < address + bytes; chunk += kChunk)
    in_use_[chunk] += std::min(address + bytes, chunk + kChunk) - std::max(address, chunk);
}

void TopDown::give(std::uint64_t address, std::uint64_t bytes) {
  for (const std::uint64_t end = address + bytes; address < end;) {
    const std::uint64_t next = std::min(end, chunk_of(address) + kChunk);
    give_within_chunk(address, next - address);
    address = next;
  }
}

void TopDown::give_within_chunk(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t chunk = chunk_of(address);
  if ((in_use_[chunk] -= bytes) > 0) return add(holes_, address, bytes, chunk, chunk + kChunk);
  in_use_.erase(chunk);
  holes_.erase(holes_.lower_bound(chunk), holes_.lower_bound(chunk + kChunk));
  add(unused_, chunk, kChunk, 0, UINT64_MAX);
}

}  // namespace tidepool::dry
