#include "traces/import/updates.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidepool {
namespace {

constexpr std::size_t kPiece = 8;       // number of ops by which the begin of a step is recognised
constexpr std::size_t kMostAhead = 64;  // most places that these ops are taken from

/// A block that is in use for half of the job or more.
struct Lasting {
  std::int64_t bytes = 0;
  std::vector<std::size_t> updates;  ///< the last op of each
};

/// The updates of one block, from its uses in order.
std::vector<std::size_t> updates_of(std::span<const BlockUse> uses) {
  std::vector<std::size_t> updates;
  bool read = false, changed = false;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i + 1 < uses.size() && uses[i + 1].op == uses[i].op)
      continue;  // the last of an op's uses is a write, if any is
    if (uses[i].access == Access::kRead) {
      read = true;
      changed = false;
    } else if (changed) {
      updates.back() = uses[i].op;
    } else if (read) {
      updates.push_back(uses[i].op);
      changed = true;
    }
  }
  return updates;
}

/// @param unknown_writes  whether a use of unknown access is a write; else it is left out
std::vector<Lasting> lasting_blocks(std::size_t ops, std::span<const BlockUse> uses,
                                    std::span<const std::int64_t> block_bytes, bool unknown_writes) {
  std::vector<BlockUse> sorted{uses.begin(), uses.end()};
  std::erase_if(sorted, [&](const BlockUse& use) {
    return use.access == Access::kRead ? use.copied : use.unknown() && !unknown_writes;
  });
  std::sort(sorted.begin(), sorted.end(), [](const BlockUse& a, const BlockUse& b) {
    return std::tuple{a.block, a.op, a.access != Access::kRead} < std::tuple{b.block, b.op, b.access != Access::kRead};
  });
  std::vector<Lasting> lasting;
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = last) {
    while (last < sorted.size() && sorted[last].block == sorted[first].block) ++last;
    const std::int64_t bytes = block_bytes[sorted[first].block];
    if (bytes <= kNumberBytes || (sorted[last - 1].op - sorted[first].op + std::size_t{1}) * 2 < ops) continue;
    lasting.push_back({bytes, updates_of(std::span<const BlockUse>{sorted}.subspan(first, last - first))});
  }
  return lasting;
}

/// The number of updates of the group with most bytes: two blocks or more, with that number of updates or one less.
/// Blocks with fewer than two updates are in no group. 0 if no group has 1/`share` of all bytes.
std::size_t usual_number(const std::vector<Lasting>& lasting, std::int64_t share) {
  struct Group {
    std::int64_t bytes = 0;
    std::size_t blocks = 0;
  };
  std::map<std::size_t, Group> groups;
  std::int64_t all = 0;
  for (const Lasting& block : lasting) {
    all += block.bytes;
    for (const std::size_t number : {block.updates.size(), block.updates.size() + 1}) {
      if (block.updates.size() < 2) continue;
      groups[number].bytes += block.bytes;
      ++groups[number].blocks;
    }
  }
  std::size_t best = 0;
  for (const auto& [number, group] : groups)
    if (group.blocks >= 2 && group.bytes * share >= all && (best == 0 || group.bytes > groups[best].bytes))
      best = number;
  return best;
}

/// Whether an update by `op` belongs to the `at`-th of `updates`: it is nearer to that one than to any other.
bool near(const std::vector<std::size_t>& updates, std::size_t at, std::size_t op) {
  return (at == 0 || op * 2 > updates[at] + updates[at - 1]) &&
         (at + 1 == updates.size() || op * 2 < updates[at] + updates[at + 1]);
}

/// The op with which the first step begins. Let a piece of ops near the begin of the second step occur n times in that
/// step. The first step then begins at the n-th last place before `end` at which the piece occurs. Returns `end`, the
/// end of the first step, if no piece occurs often enough.
std::size_t first_begin(std::span<const std::uint32_t> names, std::size_t end, std::size_t second_end) {
  const auto places = [&](std::size_t piece, std::size_t first, std::size_t last) {
    std::vector<std::size_t> found;
    for (std::size_t at = first; at + kPiece <= last; ++at)
      if (std::ranges::equal(names.subspan(at, kPiece), names.subspan(piece, kPiece))) found.push_back(at);
    return found;
  };
  std::size_t tried = 0, equal_end = 0;  // equal_end: end of the equal ops with which the second step begins
  for (std::size_t ahead = 0; ahead < (second_end - end) / 2 && tried < kMostAhead; ++ahead) {
    if (end + ahead + kPiece > second_end) break;
    const std::span<const std::uint32_t> piece = names.subspan(end + ahead, kPiece);
    if (std::ranges::count(piece, piece.front()) == static_cast<std::ptrdiff_t>(kPiece)) {  // as memsets of state
      equal_end = end + ahead + kPiece;
      continue;
    }
    ++tried;
    const std::size_t wanted = places(end + ahead, end, second_end).size();
    const std::vector<std::size_t> found = places(end + ahead, 0, end);
    if (found.size() < wanted) continue;
    std::size_t begin = found[found.size() - wanted];
    for (std::size_t at = end + ahead; at > end && begin > 0; --at, --begin)
      if (at <= equal_end && names[begin - 1] != names[at - 1]) break;  // the first step has fewer equal ops, or none
    return begin;
  }
  return end;
}

/// The last op of each update, by the blocks with the usual number of updates.
std::vector<std::size_t> usual_updates(const std::vector<Lasting>& lasting, std::int64_t share) {
  const std::size_t number = usual_number(lasting, share);
  const Lasting* largest = nullptr;
  for (const Lasting& block : lasting)
    if (number > 0 && block.updates.size() == number && (largest == nullptr || block.bytes > largest->bytes))
      largest = &block;
  if (largest == nullptr) return {};
  std::vector<std::size_t> ends = largest->updates;
  for (const Lasting& block : lasting) {
    if (block.updates.size() != number) continue;
    for (std::size_t i = 0; i < number; ++i)
      if (near(largest->updates, i, block.updates[i])) ends[i] = std::max(ends[i], block.updates[i]);
  }
  return ends;
}

}  // namespace

std::vector<std::size_t> find_updates(std::size_t ops, std::span<const BlockUse> uses,
                                      std::span<const std::int64_t> block_bytes) {
  constexpr std::int64_t kKnown = 1000, kUnknown = 10;  // the group has 1/1000 or 1/10 of all bytes
  std::vector<std::size_t> updates = usual_updates(lasting_blocks(ops, uses, block_bytes, false), kKnown);
  if (updates.empty()) updates = usual_updates(lasting_blocks(ops, uses, block_bytes, true), kUnknown);
  return updates;
}

std::vector<FoundStep> steps_with_updates(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                          std::span<const std::size_t> updates) {
  if (updates.size() < 2) return found;
  const auto updates_in = [&](const FoundStep& step) {
    return std::lower_bound(updates.begin(), updates.end(), step.last) -
           std::lower_bound(updates.begin(), updates.end(), step.first);
  };
  std::vector<FoundStep> steps = std::move(found);
  const bool agree =
      std::all_of(steps.begin(), steps.end(), [&](const FoundStep& step) { return updates_in(step) == 1; });
  const std::size_t first_missing = agree && !steps.empty() && updates.front() < steps.front().first ? 1 : 0;
  if (!agree || steps.size() + first_missing < updates.size()) {
    steps.clear();
    for (std::size_t i = 1; i < updates.size(); ++i) steps.push_back({updates[i - 1] + 1, updates[i] + 1});
  }
  if (updates.front() < steps.front().first)
    if (const std::size_t begin = first_begin(names, steps[0].first, steps[0].last); begin <= updates[0])
      steps.insert(steps.begin(), {begin, steps[0].first});
  return steps;
}

}  // namespace tidepool
