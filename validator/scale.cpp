#include "validator/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kWord = sizeof(std::uint64_t);

bool gives_place(Verb verb) { return verb == Verb::kAlloc || verb == Verb::kScratch || verb == Verb::kSwapIn; }

/// Largest sum of bytes that have memory of their own at once: places without an address and host copies.
Int128 most_unaddressed(const Trace& trace, const Plan& plan) {
  std::vector<Bytes> device(trace.versions().size()), host(trace.versions().size());
  Int128 held = 0, most = 0;
  std::vector<Bytes> scratch;
  const auto set = [&](Bytes& slot, Bytes size) {
    held += size.count() - slot.count();
    slot = size;
    most = std::max(most, held);
  };
  for (const Action& action : plan.actions) {
    const bool own = action.offset == kNoAddress;
    switch (action.verb) {
      case Verb::kAlloc:
        set(device[action.subject], own ? action.size : Bytes{});
        break;
      case Verb::kSwapIn:
        set(device[action.subject], own ? action.size : Bytes{});
        set(host[action.subject], trace.size(VersionId{action.subject}));
        break;
      case Verb::kScratch:
        if (own) scratch.emplace_back(), set(scratch.back(), action.size);
        break;
      case Verb::kRun:
        for (Bytes& each : scratch) set(each, Bytes{});
        scratch.clear();
        for (const Use& use : trace.uses(OpId{action.subject})) {
          if (!use.out.valid() || use.access == Access::kView) continue;
          const VersionId parent = trace.version(use.out).parent;
          if (!parent.valid() || device[use.out.index()] > Bytes{}) continue;
          const Bytes taken = device[parent.index()];
          set(device[parent.index()], Bytes{});
          set(device[use.out.index()], taken);
        }
        break;
      case Verb::kSwapOut:
        set(host[action.subject], trace.size(VersionId{action.subject}));
        break;
      case Verb::kFree:
        set(host[action.subject], Bytes{});
        [[fallthrough]];
      case Verb::kDrop:
        set(device[action.subject], Bytes{});
        break;
      case Verb::kReserve:
      case Verb::kRelease:
      case Verb::kMap:
      case Verb::kUnmap:
      case Verb::kCopy:
      case Verb::kNext:
        break;
    }
  }
  return most;
}

}  // namespace

Scale::Scale(const Trace& trace, const Plan& plan, Bytes aim, Bytes limit) {
  std::vector<Range> taken;
  std::uint64_t bits = 0;  // every bit set in some offset
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kReserve || action.verb == Verb::kMap)
      taken.push_back({action.offset, action.offset + action.size});
    if (gives_place(action.verb) && action.offset != kNoAddress)
      bits |= static_cast<std::uint64_t>(action.offset.count());
  }
  if (taken.empty()) {
    Range all{Bytes{std::numeric_limits<std::int64_t>::max()}, Bytes{}};
    for (const Action& action : plan.actions)
      if (gives_place(action.verb) && action.offset != kNoAddress)
        all = {std::min(all.first, action.offset), std::max(all.end, action.offset + action.size)};
    if (all.first < all.end) taken.push_back(all);
  }
  std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  for (const Range& range : taken) {
    if (!ranges_.empty() && range.first <= ranges_.back().end)
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    else
      ranges_.push_back(range);
  }

  const Int128 unaddressed = most_unaddressed(trace, plan);
  const std::int64_t largest = bits == 0 ? std::int64_t{1} << 62 : static_cast<std::int64_t>(bits & (~bits + 1));
  const auto needed = [&](std::int64_t unit) {
    Int128 words = unaddressed / unit;
    for (const Range& range : ranges_) words += (range.end.count() - range.first.count()) / unit + 2;
    return words * kWord;
  };
  std::int64_t unit = 1;
  while (needed(unit) > aim.count() && unit < largest) unit *= 2;
  if (needed(unit) > std::max(aim, limit).count()) {
    const Int128 bytes = std::min<Int128>(needed(unit), std::numeric_limits<std::int64_t>::max());
    throw InputError{
        fmt::format("the plan needs {} of memory, because its addresses are multiples of {} bytes only; "
                    "expected at most {} (--arena)",
                    to_text(Bytes{static_cast<std::int64_t>(bytes)}), largest, to_text(std::max(aim, limit)))};
  }
  unit_ = Bytes{unit};
  for (Range& range : ranges_) {
    range.first = Bytes{range.first.count() / unit * unit};
    range.word = arena_words_;
    arena_words_ += words(range.end - range.first);
  }
}

std::size_t Scale::word(Bytes offset) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                                      [](Bytes value, const Range& range) { return value < range.first; });
  const Range& range = *std::prev(after);
  return range.word + static_cast<std::size_t>((offset - range.first).count() / unit_.count());
}

}  // namespace tidepool
