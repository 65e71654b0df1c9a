#include "tracer/dry/first_fit.hpp"

#include <iterator>

namespace tidepool::dry {

std::optional<std::uint64_t> FirstFit::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const auto [first, size] = *hole;
    const std::uint64_t address = (first + alignment - 1) & ~(alignment - 1);
    const std::uint64_t skipped = address - first;
    if (skipped > size || bytes > size - skipped) continue;
    holes_.erase(hole);
    if (skipped != 0) holes_.emplace(first, skipped);
    if (const std::uint64_t rest = size - skipped - bytes; rest != 0) holes_.emplace(address + bytes, rest);
    return address;
  }
  return std::nullopt;
}

void FirstFit::give(std::uint64_t address, std::uint64_t bytes) {
  auto next = holes_.lower_bound(address);
  if (next != holes_.begin()) {
    if (const auto before = std::prev(next); before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      holes_.erase(before);
    }
  }
  if (next != holes_.end() && next->first == address + bytes) {
    bytes += next->second;
    holes_.erase(next);
  }
  holes_.emplace(address, bytes);
}

}  // namespace tidepool::dry
