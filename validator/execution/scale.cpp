#include "validator/execution/scale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/base/error.hpp"
#include "validator/execution/words.hpp"

namespace tidepool {
namespace {

bool gives_place(Verb verb) { return verb == Verb::kAlloc || verb == Verb::kScratch || verb == Verb::kSwapIn; }

/// Memory outside the arena: places without an address and host copies.
struct Unaddressed {
  Int128 bytes = 0;   ///< largest sum at any time
  Int128 places = 0;  ///< largest number at any time
};

Unaddressed most_unaddressed(const Trace& trace, const Plan& plan) {
  std::vector<Bytes> device(trace.versions().size()), host(trace.versions().size());
  Unaddressed held, most;
  std::vector<Bytes> scratch;
  const auto set = [&](Bytes& slot, Bytes size) {
    held.bytes += size.count() - slot.count();
    held.places += (size > Bytes{} ? 1 : 0) - (slot > Bytes{} ? 1 : 0);
    slot = size;
    most = {std::max(most.bytes, held.bytes), std::max(most.places, held.places)};
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
      case Verb::kAwait:
      case Verb::kNext:
        break;
    }
  }
  return most;
}

}  // namespace

Scale::Scale(const Trace& trace, const Plan& plan, Bytes aim, Bytes least) : unit_{least} {
  struct End {
    Bytes at;
    int places = 0;  ///< places that begin here, minus places that end here
  };
  std::vector<End> ends;
  for (const Action& action : plan.actions) {
    if (!gives_place(action.verb) || action.offset == kNoAddress) continue;
    ends.push_back({action.offset, 1});
    ends.push_back({action.offset + trace.size(VersionId{action.subject}), 0});
    ends.push_back({action.offset + action.size, -1});
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.at < b.at; });
  std::int64_t places = 0, covered_pieces = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    places += ends[i].places;
    if (i + 1 < ends.size() && ends[i + 1].at == ends[i].at) continue;
    const Bytes length = i + 1 < ends.size() && places > 0 ? ends[i + 1].at - ends[i].at : Bytes{};
    pieces_.push_back({ends[i].at, length});
    covered_pieces += length > Bytes{};
  }

  const Unaddressed unaddressed = most_unaddressed(trace, plan);
  const auto needed = [&](Bytes unit) {
    Int128 words = unaddressed.bytes / unit.count() + unaddressed.places;
    for (const Piece& piece : pieces_) words += (piece.covered.count() + Int128{unit.count()} - 1) / unit.count();
    return words * kWordBytes;
  };
  constexpr Bytes kCoarsest{std::int64_t{1} << 62};
  while (needed(unit_) > aim.count() && unit_ < kCoarsest) unit_ = unit_ * 2;
  if (needed(unit_) > aim.count()) {
    const Int128 pieces = covered_pieces + unaddressed.places;
    throw InputError{
        fmt::format("the plan needs {} of memory, a word for each of the {} pieces into which its places "
                    "divide it; expected at most {} (--arena)",
                    to_text(Bytes{static_cast<std::int64_t>(pieces) * kWordBytes}), static_cast<std::int64_t>(pieces),
                    to_text(aim))};
  }
  for (Piece& piece : pieces_) {
    piece.word = arena_words_;
    arena_words_ += words(piece.covered);
  }
}

std::size_t Scale::word(Bytes offset) const {
  const auto at = std::lower_bound(pieces_.begin(), pieces_.end(), offset,
                                   [](const Piece& piece, Bytes value) { return piece.first < value; });
  return at->word;
}

}  // namespace tidepool
