#include "tests/oracle/labels.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tidepool::optimum {
namespace {

std::uint64_t hash_of(std::span<const std::int64_t> words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const std::int64_t word : words) {
    hash ^= static_cast<std::uint64_t>(word);
    hash *= 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29;
  }
  return hash;
}

/// The earliest time of the host that matters. The host's work adds up, so its time may matter even if it is before all
/// others. It does not matter if it is earlier by more than the work that the host can get before the next op runs.
Nanos least_of_host(const TinyStep& step, Nanos base) {
  return base - (step.submit + step.launch) * static_cast<std::int64_t>(2 * kMostVersions);
}

}  // namespace

/// Calls visit(Nanos&) for every time that may matter, in an order given by the key.
template <class Visit>
void Labels::for_each_time(const TinyStep& step, State& state, Visit visit) {
  for (std::size_t i = 0; i < step.streams; ++i) visit(state.stream[i]);
  visit(state.h2d);
  visit(state.d2h);
  if (step.freedom.addresses) {
    Set covered[2] = {};
    for_each(state.placed, [&](std::size_t v) {
      for (std::int64_t i = 0; i < step.bytes[v] / step.unit; ++i) {
        const std::size_t at = state.unit_at[v] + static_cast<std::size_t>(i);
        covered[at / 32] |= bit(at % 32);
      }
    });
    for (std::size_t i = 0; i < step.units; ++i)
      if (!has(covered[i / 32], i % 32)) visit(state.free_from[i]);
  } else {
    visit(state.counted_free_from);
  }
  for_each(state.placed, [&](std::size_t v) { visit(state.ready[v]); });
  for_each(state.placed | step.overwritten, [&](std::size_t v) { visit(state.last_use[v]); });
  for_each(state.on_host, [&](std::size_t v) { visit(state.host_ready[v]); });
  if (step.orders)
    for (std::size_t k = 0; k < step.ops(); ++k) visit(state.op_end[k]);
  visit(state.host);
}

void Labels::pack_key(const State& state) {
  const auto pair = [](Set low, Set high) {
    return static_cast<std::int64_t>(std::uint64_t{high} << 32 | std::uint64_t{low});
  };
  packed_.clear();
  packed_.push_back(pair(state.placed, state.filled));
  packed_.push_back(pair(state.on_host, state.may_stay));
  packed_.push_back(std::int64_t{state.repeated} << 16 | std::int64_t{state.position} << 8 | std::int64_t{state.begun});
  if (step_.freedom.addresses) {
    std::int64_t word = 0;
    int filled = 0;
    for_each(state.placed, [&](std::size_t v) {
      word = word << 8 | state.unit_at[v];
      if (++filled % 7 == 0) packed_.push_back(std::exchange(word, 0));
    });
    packed_.push_back(word);
  }
  key_words_ = packed_.size();
}

void Labels::pack(const State& state) {
  pack_key(state);
  piece_words_ = 0;
  State copy = state;
  const Nanos base = state.base(step_);
  const Nanos host_least = least_of_host(step_, base);
  const auto clipped = [&](const Nanos& time) { return std::max(time, &time == &copy.host ? host_least : base); };
  if (!step_.disturbed) {
    for_each_time(step_, copy, [&](Nanos& time) { packed_.push_back(clipped(time).count()); });
    const std::size_t before = packed_.size();
    for (const FreeBytes::Piece& piece : state.free.pieces())
      if (piece.from > base) packed_.insert(packed_.end(), {piece.from.count(), piece.size.count()});
    piece_words_ = packed_.size() - before;
    return;
  }
  const auto mark = [&](Nanos time) {
    const std::int64_t lane = (time - SharedLink::kMarks).count() % 2;
    return time - Nanos{2 * state.link.lanes[static_cast<std::size_t>(lane)].ended};
  };
  for_each_time(step_, copy, [&](Nanos& time) {
    packed_.push_back((SharedLink::is_mark(time) ? mark(time) : clipped(time) - base).count());
  });
  for (const SharedLink::Lane& lane : state.link.lanes) {
    packed_.push_back(std::int64_t{lane.count} << 1 | std::int64_t{lane.moves});
    packed_.push_back(lane.moves ? lane.left : 0);
    for (std::size_t i = 0; i < lane.count; ++i) {
      const SharedLink::Copy& waiting = lane.waiting[i];
      const bool first = i == 0 && waiting.after_mark == Nanos{};  // its latency may have begun
      packed_.push_back(waiting.version);
      packed_.push_back(i == 0 && lane.moves ? 0
                                             : (std::max(waiting.after, first ? lane.last_end : base) - base).count());
      packed_.push_back(waiting.after_mark == Nanos{} ? 0 : mark(waiting.after_mark).count());
    }
  }
  key_words_ = packed_.size();
  packed_.push_back(base.count());
}

/// The head of the list of labels with the key of the packed state. Keys with one hash have lists at successive hashes.
Labels::Number& Labels::head_of_packed() {
  const std::span<const std::int64_t> key{packed_.data(), key_words_};
  for (std::uint64_t hash = hash_of(key);; ++hash) {
    Number& head = heads_.try_emplace(hash, kNone).first->second;
    if (head == kNone) return head;
    const Label& label = labels_[head];
    if (label.key == key_words_ && std::equal(key.begin(), key.end(), words_.data() + label.first)) return head;
  }
}

std::optional<Labels::Number> Labels::add(const State& state) {
  pack(state);
  const std::size_t times = packed_.size() - key_words_ - piece_words_;
  const std::int64_t* const here = packed_.data() + key_words_;
  const std::span<const std::int64_t> pieces{here + times, piece_words_};
  Number& head = head_of_packed();
  for (Number* link = &head; *link != kNone;) {
    ++comparisons_;
    Label& label = labels_[*link];
    const std::int64_t* const there = words_.data() + label.first + key_words_;
    bool here_later = false, there_later = false;
    for (std::size_t i = 0; i < times && !(here_later && there_later); ++i) {
      here_later |= here[i] > there[i];
      there_later |= here[i] < there[i];
    }
    here_later = here_later || !never_later(pieces, pieces_of(label));
    there_later = there_later || !never_later(pieces_of(label), pieces);
    if (!there_later) {  // the next states are often later than this label, too
      const Number found = *link;
      *link = label.next;
      label.next = std::exchange(head, found);
      return std::nullopt;
    }
    if (!here_later) {
      label.beaten = true;
      *link = label.next;
      continue;
    }
    link = &label.next;
  }
  const Number number = static_cast<Number>(labels_.size());
  labels_.push_back({words_.size(), static_cast<std::uint32_t>(key_words_), static_cast<std::uint32_t>(times),
                     static_cast<std::uint32_t>(piece_words_), head, false});
  head = number;
  words_.insert(words_.end(), packed_.begin(), packed_.end());
  return number;
}

void Labels::unpack_link(State& state, const std::int64_t* word) const {
  for (SharedLink::Lane& lane : state.link.lanes) {
    lane.count = static_cast<std::uint8_t>(*word >> 1);
    lane.moves = (*word++ & 1) != 0;
    lane.left = *word++;
    lane.last_end = Nanos{std::numeric_limits<std::int64_t>::min()};
    for (std::size_t i = 0; i < lane.count; ++i) {
      lane.waiting[i].version = static_cast<std::uint8_t>(*word++);
      lane.waiting[i].after = Nanos{*word++};
      lane.waiting[i].after_mark = Nanos{*word++};
    }
  }
  const Nanos base{*word};
  for_each_time(step_, state, [&](Nanos& time) {
    if (!SharedLink::is_mark(time)) time += base;
  });
  for (SharedLink::Lane& lane : state.link.lanes)
    for (std::size_t i = 0; i < lane.count; ++i) lane.waiting[i].after += base;
  state.link.clock = base;
}

bool Labels::never_worse(Number first, Number second) const {
  const Label &a = labels_[first], &b = labels_[second];
  if (a.key != b.key || a.times != b.times) return false;
  const std::int64_t *here = words_.data() + a.first, *there = words_.data() + b.first;
  if (!std::equal(here, here + a.key, there)) return false;
  for (std::uint32_t i = a.key; i < a.key + a.times; ++i)
    if (here[i] > there[i]) return false;
  return never_later(pieces_of(a), pieces_of(b));
}

std::vector<std::int64_t> Labels::offsets(const TinyStep& step, const State& state) {
  std::vector<std::int64_t> offsets;
  State copy = state;
  const Nanos base = state.base(step);
  const Nanos host_least = least_of_host(step, base);
  for_each_time(step, copy, [&](Nanos& time) {
    offsets.push_back((std::max(time, &time == &copy.host ? host_least : base) - base).count());
  });
  for (const FreeBytes::Piece& piece : state.free.pieces())
    if (piece.from > base) offsets.insert(offsets.end(), {(piece.from - base).count(), piece.size.count()});
  return offsets;
}

State Labels::state(Number number) const {
  const std::int64_t* word = words_.data() + labels_[number].first;
  State state;
  const auto low = [](std::int64_t value) { return static_cast<Set>(static_cast<std::uint64_t>(value)); };
  const auto high = [](std::int64_t value) { return static_cast<Set>(static_cast<std::uint64_t>(value) >> 32); };
  state.placed = low(word[0]), state.filled = high(word[0]);
  state.on_host = low(word[1]), state.may_stay = high(word[1]);
  state.position = static_cast<std::uint8_t>(word[2] >> 8), state.begun = static_cast<std::uint8_t>(word[2]);
  state.repeated = word[2] >> 16 != 0;
  word += 3;
  if (step_.freedom.addresses) {
    const int count = std::popcount(state.placed);
    int read = 0;
    for_each(state.placed, [&](std::size_t v) {
      const int in_word = std::min(7, count - read / 7 * 7), at = read % 7;
      state.unit_at[v] = static_cast<std::uint8_t>(word[read / 7] >> (8 * (in_word - 1 - at)));
      ++read;
    });
    word += count / 7 + 1;
  }
  for_each_time(step_, state, [&](Nanos& time) { time = Nanos{*word++}; });
  for (std::uint32_t i = 0; i < labels_[number].pieces; i += 2) state.free.release(Bytes{word[i + 1]}, Nanos{word[i]});
  if (step_.disturbed) unpack_link(state, word);
  return state;
}

}  // namespace tidepool::optimum
