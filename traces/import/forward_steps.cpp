#include "traces/import/forward_steps.hpp"

#include <algorithm>
#include <iterator>

namespace tidepool {
namespace {

/// Divides the ops into parts, in order, such that no block is used in two parts, except small blocks and blocks whose
/// uses span at least half of the job. Ops outside of the spans of all other blocks are in no part.
std::vector<FoundStep> tied_parts(std::size_t ops, std::span<const BlockUse> uses,
                                  std::span<const std::int64_t> block_bytes) {
  std::vector<FoundStep> spans(block_bytes.size(), {ops, 0});
  for (const BlockUse& use : uses) {
    FoundStep& span = spans[use.block];
    span.first = std::min(span.first, std::size_t{use.op});
    span.last = std::max(span.last, use.op + std::size_t{1});
  }
  std::vector<std::size_t> reach(ops, 0);  // by op: the end of the longest span that begins there
  for (std::size_t block = 0; block < spans.size(); ++block) {
    const auto [first, last] = spans[block];
    if (first >= last || (last - first) * 2 >= ops || block_bytes[block] <= kNumberBytes) continue;
    reach[first] = std::max(reach[first], last);
  }
  std::vector<FoundStep> parts;
  for (std::size_t op = 0; op < ops; ++op) {
    if (reach[op] == 0) continue;
    if (parts.empty() || op >= parts.back().last)
      parts.push_back({op, reach[op]});
    else
      parts.back().last = std::max(parts.back().last, reach[op]);
  }
  return parts;
}

std::vector<std::uint32_t> kinds_of(std::span<const std::uint32_t> names, const FoundStep& part) {
  std::vector<std::uint32_t> kinds{names.begin() + static_cast<std::ptrdiff_t>(part.first),
                                   names.begin() + static_cast<std::ptrdiff_t>(part.last)};
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

bool alike(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.size() * 3 >= std::max(a.size(), b.size()) * 2;
}

}  // namespace

std::vector<FoundStep> divided_forward_steps(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                             std::span<const BlockUse> uses,
                                             std::span<const std::int64_t> block_bytes) {
  const auto known = std::count_if(uses.begin(), uses.end(), [](const BlockUse& use) { return !use.unknown(); });
  if (known * 2 < std::ssize(uses)) return found;
  std::vector<FoundStep> parts = tied_parts(names.size(), uses, block_bytes);
  std::size_t most = 0;
  for (const FoundStep& part : parts) most = std::max(most, part.last - part.first);
  std::erase_if(parts, [&](const FoundStep& part) { return (part.last - part.first) * 2 < most; });
  if (found.empty() || parts.size() <= found.size()) return found;
  const std::vector<std::uint32_t> first = kinds_of(names, parts.front());
  for (const FoundStep& part : parts)
    if (!alike(first, kinds_of(names, part))) return found;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) parts[i].last = parts[i + 1].first;
  return parts;
}

}  // namespace tidepool
