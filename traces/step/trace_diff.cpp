#include "traces/step/trace_diff.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "traces/program_names.hpp"
#include "traces/step/common_subsequence.hpp"
#include "traces/step/holders.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// A trace with its anchors: the ops, or the allocations if ops cannot be compared.
struct Side {
  Side(const Trace& of, bool by_op) : trace{of}, names{of}, is_for{ops_they_are_for(of)} {
    const std::size_t buffers = of.buffers().size();
    anchor.assign(buffers, kNone);
    allocated.assign(buffers, kNone);
    end.assign(buffers, kNone);
    freed.assign(buffers, std::numeric_limits<std::size_t>::max());
    for (std::size_t i = 0; i < of.events().size(); ++i) {
      const Event& event = of.events()[i];
      if (event.kind == EventKind::kAlloc) allocated[event.id] = static_cast<std::uint32_t>(i);
      if (event.kind == EventKind::kFree) {
        end[event.id] = static_cast<std::uint32_t>(position.size());
        freed[event.id] = i;
      }
      if (event.kind != (by_op ? EventKind::kRun : EventKind::kAlloc)) continue;
      if (!by_op) anchor[event.id] = static_cast<std::uint32_t>(position.size());
      of_event.push_back(event.id);
      position.push_back(i);
    }
    if (!by_op) return;
    std::vector<std::uint32_t> place(of.ops().size());
    for (std::uint32_t i = 0; i < of_event.size(); ++i) place[of_event[i]] = i;
    for (std::size_t i = 0; i < buffers; ++i)
      if (!of.buffers()[i].born_before && is_for[i].valid()) anchor[i] = place[is_for[i].index()];
    find_successors();
  }

  /// A buffer that an earlier step has left, and that ends in this one, is of the line that leaves one of its size now.
  /// That counts more than a recorded line: without its allocation, it is that of what was at its address before.
  void find_successors() {
    std::map<Bytes, std::vector<BufferId>> left;  // by size, the last one first
    for (std::size_t i = trace.buffers().size(); i-- > 0;)
      if (const Buffer& buffer = trace.buffers()[i];
          !buffer.born_before && end[i] == kNone && trace.text(buffer.name).empty())
        left[buffer.size].push_back(BufferId{i});
    successor.resize(trace.buffers().size());
    for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
      const Buffer& buffer = trace.buffers()[i];
      if (!buffer.born_before || end[i] == kNone || !trace.text(buffer.name).empty()) continue;
      const auto same = left.find(buffer.size);
      if (same == left.end() || same->second.empty()) continue;
      successor[i] = same->second.back();
      same->second.pop_back();
    }
  }

  /// The line of a buffer, or else its module; and whether it is a line.
  std::pair<std::string, bool> place_of(std::size_t buffer) const {
    const bool carried = !successor.empty() && successor[buffer].valid();
    const BufferId id = carried ? successor[buffer] : BufferId{buffer};
    if (const std::string_view line = line_of(trace, id, is_for[id.index()]); !line.empty())
      return {std::string{line}, true};
    return {names.of(id).text, false};
  }

  /// The last op before a buffer is freed.
  OpId until(BufferId buffer) const {
    if (!buffer.valid() || end[buffer.index()] == kNone || end[buffer.index()] == 0 || trace.ops().empty()) return {};
    return OpId{of_event[end[buffer.index()] - 1]};
  }

  const Trace& trace;
  ModuleNames names;
  std::vector<OpId> is_for;                 // by buffer
  std::vector<std::uint32_t> anchor;        // by buffer: the anchor that it is for; none: older than the trace
  std::vector<std::uint32_t> allocated;     // by buffer: position of its allocation; none: older
  std::vector<std::uint32_t> end;           // by buffer: the number of anchors before its free; none: never freed
  std::vector<std::size_t> freed;           // by buffer: position of its free
  std::vector<BufferId> successor;          // by buffer: see find_successors(); empty if ops cannot be compared
  std::vector<std::uint32_t> of_event;      // by anchor: its op, or its buffer
  std::vector<std::size_t> position;        // by anchor: in Trace::events()
  std::vector<std::uint32_t> pair;          // by anchor: the other trace's anchor, or none
  std::vector<std::uint32_t> pairs_before;  // by anchor, and at the end: paired anchors before it
};

class Letters {
 public:
  std::uint32_t of(const std::string& text) {
    return numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

std::size_t mixed(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}
std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

class Diff {
 public:
  Diff(const Trace& a, const Trace& b) : by_op_{!a.ops().empty() && !b.ops().empty()}, a_{a, by_op_}, b_{b, by_op_} {}

  TraceDiff run() {
    pair_anchors();
    pair_buffers();
    find_differences();
    find_causes();
    compare_peaks();
    find_first();
    make_rows();
    return std::move(diff_);
  }

 private:
  /// The letter of an anchor. Coarse ones leave out what a changed program changes first.
  std::string letter(const Side& side, std::uint32_t anchor, bool coarse) const {
    const Trace& trace = side.trace;
    if (by_op_) {
      const Op& op = trace.op(OpId{side.of_event[anchor]});
      std::string text{trace.text(op.name)};
      if (coarse) return text;
      return text + '\n' + std::string{trace.text(op.module)} + '\n' + static_cast<char>('0' + int(op.phase));
    }
    const Buffer& buffer = trace.buffer(BufferId{side.of_event[anchor]});
    std::string text{trace.text(buffer.line)};
    return coarse ? text : text + '\n' + std::to_string(buffer.size.count());
  }

  std::vector<std::uint32_t> letters(const Side& side, bool coarse, Letters& known) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < side.of_event.size(); ++i) found.push_back(known.of(letter(side, i, coarse)));
    return found;
  }

  void pair_anchors() {
    a_.pair.assign(a_.of_event.size(), kNone);
    b_.pair.assign(b_.of_event.size(), kNone);
    const auto join = [&](std::uint32_t a, std::uint32_t b) {
      a_.pair[a] = b;
      b_.pair[b] = a;
    };
    Letters fine, coarse;
    const auto pairs = common_subsequence(letters(a_, false, fine), letters(b_, false, fine));
    const auto rough_a = letters(a_, true, coarse), rough_b = letters(b_, true, coarse);
    std::uint32_t from_a = 0, from_b = 0;
    const auto between = [&](std::uint32_t to_a, std::uint32_t to_b) {
      if (to_a > from_a && to_b > from_b)
        for (const auto& [a, b] : common_subsequence(std::span{rough_a}.subspan(from_a, to_a - from_a),
                                                     std::span{rough_b}.subspan(from_b, to_b - from_b)))
          join(from_a + a, from_b + b);
    };
    for (const auto& [a, b] : pairs) {
      between(a, b);
      join(a, b);
      from_a = a + 1;
      from_b = b + 1;
    }
    between(static_cast<std::uint32_t>(rough_a.size()), static_cast<std::uint32_t>(rough_b.size()));
    for (Side* side : {&a_, &b_}) {
      std::uint32_t count = 0;
      for (const std::uint32_t other : side->pair) {
        side->pairs_before.push_back(count);
        count += other != kNone;
      }
      side->pairs_before.push_back(count);
      diff_.paired_ops = count;
    }
    diff_.only_a = a_.pair.size() - diff_.paired_ops;
    diff_.only_b = b_.pair.size() - diff_.paired_ops;
    find_places();
  }

  void find_places() {
    std::size_t b = 0;
    const auto only_b = [&](std::size_t to) {
      for (; b < to; ++b) diff_.places.push_back({ProgramPlace::kNone, b_.position[b]});
    };
    for (std::size_t a = 0; a < a_.pair.size(); ++a) {
      const std::uint32_t other = a_.pair[a];
      if (other != kNone) only_b(other);
      diff_.places.push_back({a_.position[a], other == kNone ? ProgramPlace::kNone : b_.position[other]});
      if (other != kNone) b = other + std::size_t{1};
    }
    only_b(b_.pair.size());
  }

  /// The group in which a buffer may have its counterpart: those of one pair of anchors, or those from before.
  static std::optional<std::uint32_t> group(const Side& side, std::size_t buffer, bool is_b) {
    const std::uint32_t anchor = side.anchor[buffer];
    if (anchor == kNone) return side.trace.buffers()[buffer].born_before ? 0 : 1;
    if (side.pair[anchor] == kNone) return {};
    return 2 + (is_b ? anchor : side.pair[anchor]);
  }

  /// In what counterparts agree, best first. The last: they come in the same order.
  static std::optional<std::size_t> agreement(const Trace& trace, std::size_t id, int pass) {
    const Buffer& buffer = trace.buffers()[id];
    const std::size_t kind = static_cast<std::size_t>(buffer.kind),
                      size = static_cast<std::size_t>(buffer.size.count());
    const std::size_t name = hash_of(trace.text(buffer.name)), line = hash_of(trace.text(buffer.line));
    switch (pass) {
      case 0:
        return mixed(mixed(mixed(kind, name), line), size);
      case 1:
        if (trace.text(buffer.name).empty()) return {};
        return mixed(kind, name);
      case 2:
        return mixed(kind, size);
      case 3:
        return mixed(kind, line);
      default:
        return 0;
    }
  }

  void pair_buffers() {
    of_a_.assign(a_.trace.buffers().size(), kNone);
    of_b_.assign(b_.trace.buffers().size(), kNone);
    for (int pass = 0; pass < 5; ++pass) {
      std::unordered_map<std::size_t, std::vector<std::uint32_t>> waiting;  // of A, the first one last
      for (std::size_t i = of_a_.size(); i-- > 0;)
        if (const auto key = key_of(a_, i, false, pass); key && of_a_[i] == kNone)
          waiting[*key].push_back(static_cast<std::uint32_t>(i));
      for (std::size_t i = 0; i < of_b_.size(); ++i) {
        const auto key = key_of(b_, i, true, pass);
        if (!key || of_b_[i] != kNone) continue;
        const auto found = waiting.find(*key);
        if (found == waiting.end() || found->second.empty()) continue;
        of_b_[i] = found->second.back();
        of_a_[found->second.back()] = static_cast<std::uint32_t>(i);
        found->second.pop_back();
      }
    }
  }

  static std::optional<std::size_t> key_of(const Side& side, std::size_t buffer, bool is_b, int pass) {
    const auto in = group(side, buffer, is_b);
    if (!in || (pass == 4 && *in < 2)) return {};
    const auto agrees = agreement(side.trace, buffer, pass);
    if (!agrees) return {};
    return mixed(*in, *agrees);
  }

  /// How many pairs of anchors have run when a buffer is freed.
  static std::uint32_t end_of(const Side& side, std::size_t buffer) {
    return side.end[buffer] == kNone ? kNone : side.pairs_before[side.end[buffer]];
  }

  void find_differences() {
    const auto buffers_a = a_.trace.buffers(), buffers_b = b_.trace.buffers();
    for (std::size_t i = 0; i < buffers_a.size(); ++i)
      if (of_a_[i] == kNone && buffers_a[i].size > Bytes{}) add(Difference::kGone, BufferId{i}, {}, buffers_a[i].size);
    for (std::size_t i = 0; i < buffers_b.size(); ++i) {
      const Bytes size = buffers_b[i].size;
      if (of_b_[i] == kNone) {
        if (size > Bytes{}) add(Difference::kNew, {}, BufferId{i}, size);
        continue;
      }
      const BufferId a{of_b_[i]}, b{i};
      const Bytes before = a_.trace.buffer(a).size;
      const std::uint32_t end_a = end_of(a_, a.index()), end_b = end_of(b_, i);
      if (size != before)
        add(size > before ? Difference::kLarger : Difference::kSmaller, a, b, size - before);
      else if (end_a != end_b)
        add(end_b > end_a ? Difference::kLonger : Difference::kShorter, a, b, size);
    }
  }

  void add(Difference change, BufferId a, BufferId b, Bytes bytes) {
    const Side& side = b.valid() ? b_ : a_;
    const std::size_t id = b.valid() ? b.index() : a.index();
    auto [cause, by_line] = side.place_of(id);
    diff_.buffers.push_back({change, a, b, bytes, std::move(cause), by_line, {}});
  }

  /// A buffer of another size because an operand has another size: the operand's cause is its cause too.
  void find_causes() {
    std::vector<std::uint32_t> difference(b_.trace.buffers().size(), kNone);  // by buffer of B, among those of sizes
    for (std::uint32_t i = 0; i < diff_.buffers.size(); ++i) {
      const BufferDifference& each = diff_.buffers[i];
      if (each.change == Difference::kLarger || each.change == Difference::kSmaller) difference[each.b.index()] = i;
    }
    std::vector<bool> known(difference.size());
    for (const Event& event : b_.trace.events()) {
      if (event.kind != EventKind::kRun) continue;
      const OpId op{event.id};
      const BufferDifference* cause = nullptr;
      for (const Use& use : b_.trace.uses(op))
        if (use.in.valid() && use.access != Access::kWrite) {
          const std::uint32_t read = difference[b_.trace.version(use.in).buffer.index()];
          if (read != kNone && cause == nullptr) cause = &diff_.buffers[read];
        }
      for (const Use& use : b_.trace.uses(op)) {
        if (!use.out.valid()) continue;
        const std::size_t made = b_.trace.version(use.out).buffer.index();
        if (difference[made] == kNone || known[made]) continue;
        known[made] = true;
        BufferDifference& each = diff_.buffers[difference[made]];
        if (cause == nullptr || cause == &each || cause->change != each.change) continue;
        each.cause = cause->cause;
        each.by_line = cause->by_line;
      }
    }
  }

  /// The position in the other trace's events at the same place of the program.
  static std::size_t counterpart(const Side& at, const Side& other, std::size_t step, bool by_op) {
    const auto next = std::lower_bound(at.position.begin(), at.position.end(), step);
    const auto anchor = static_cast<std::uint32_t>(next - at.position.begin());
    if (by_op && next != at.position.end() && at.pair[anchor] != kNone) return other.position[at.pair[anchor]];
    for (std::uint32_t i = anchor; i-- > 0;)
      if (at.pair[i] != kNone) return other.position[at.pair[i]] + 1;
    return 0;
  }

  static bool lives(const Side& side, BufferId id, std::size_t step) {
    if (!id.valid()) return false;
    const std::size_t i = id.index();
    return (side.trace.buffers()[i].born_before || side.allocated[i] < step) && side.freed[i] >= step;
  }

  /// Buffers that begin and end alike, but are alive at the compared instant in one trace only: it lies among ops that
  /// the other one lacks.
  void add_those_of_one_side(std::size_t step_a, std::size_t step_b) {
    std::vector<bool> differs(of_b_.size());
    for (const BufferDifference& each : diff_.buffers)
      if (each.b.valid()) differs[each.b.index()] = true;
    for (std::size_t i = 0; i < of_b_.size(); ++i) {
      if (of_b_[i] == kNone || differs[i] || b_.trace.buffers()[i].size == Bytes{}) continue;
      const bool in_a = lives(a_, BufferId{of_b_[i]}, step_a), in_b = lives(b_, BufferId{i}, step_b);
      if (in_a != in_b)
        add(in_b ? Difference::kLonger : Difference::kShorter, BufferId{of_b_[i]}, BufferId{i},
            b_.trace.buffers()[i].size);
    }
  }

  void compare_peaks() {
    diff_.peak_a = a_.trace.ideal_peak();
    diff_.peak_b = b_.trace.ideal_peak();
    diff_.at_b = diff_.peak_b >= diff_.peak_a;
    const Side &high = diff_.at_b ? b_ : a_, &low = diff_.at_b ? a_ : b_;
    diff_.instant = peak_instant(high.trace);
    const std::size_t there = counterpart(high, low, diff_.instant.step, by_op_);
    for (std::size_t i = 0; i < low.trace.buffers().size(); ++i)
      if (lives(low, BufferId{i}, there)) diff_.other += low.trace.buffers()[i].size;
    const std::size_t step_a = diff_.at_b ? there : diff_.instant.step,
                      step_b = diff_.at_b ? diff_.instant.step : there;
    add_those_of_one_side(step_a, step_b);
    for (BufferDifference& each : diff_.buffers) {
      if (lives(b_, each.b, step_b)) each.at_peak += b_.trace.buffer(each.b).size;
      if (lives(a_, each.a, step_a)) each.at_peak -= a_.trace.buffer(each.a).size;
    }
  }

  void find_first() {
    const auto first_of = [&](const Side& side, auto id_of) {
      std::uint32_t first = kNone;
      for (std::uint32_t i = 0; i < side.pair.size() && first == kNone; ++i)
        if (side.pair[i] == kNone) first = i;
      for (const BufferDifference& each : diff_.buffers)
        if (const BufferId id = id_of(each); id.valid() && side.anchor[id.index()] != kNone)
          first = std::min(first, side.anchor[id.index()]);
      return by_op_ && first != kNone ? OpId{side.of_event[first]} : OpId{};
    };
    diff_.first_a = first_of(a_, [](const BufferDifference& each) { return each.a; });
    diff_.first_b = first_of(b_, [](const BufferDifference& each) { return each.b; });
  }

  void make_rows() {
    struct Row {
      DifferenceRow row;
      std::size_t place = 0;
      Bytes largest;
      std::map<BufferKind, Bytes> kinds;
      std::map<std::string, Bytes> causes;
    };
    using Key = std::tuple<Difference, std::string, std::optional<BufferKind>>;
    const auto buffer_of = [&](const BufferDifference& each) -> const Buffer& {
      return each.b.valid() ? b_.trace.buffer(each.b) : a_.trace.buffer(each.a);
    };
    const auto key_of = [&](const BufferDifference& each) {
      const bool by_module = !each.by_line && !each.cause.empty();
      return Key{each.change, by_module ? "" : each.cause,
                 by_module ? std::optional{buffer_of(each).kind} : std::nullopt};
    };
    std::map<Key, Row> rows;
    for (const BufferDifference& each : diff_.buffers) {
      const Buffer& buffer = buffer_of(each);
      Row& row = rows[key_of(each)];
      row.row.change = each.change;
      row.row.bytes += each.bytes;
      row.row.at_peak += each.at_peak;
      ++row.row.buffers;
      row.kinds[buffer.kind] += buffer.size;
      row.causes[each.cause] += buffer.size;
      if (buffer.size < row.largest) continue;
      row.largest = buffer.size;
      row.row.by_line = each.by_line;
      row.row.until_a = by_op_ ? a_.until(each.a) : OpId{};
      row.row.until_b = by_op_ ? b_.until(each.b) : OpId{};
    }
    const auto most = [](const auto& bytes) {
      return std::max_element(bytes.begin(), bytes.end(),
                              [](const auto& x, const auto& y) { return x.second < y.second; })
          ->first;
    };
    std::vector<Row*> order;
    for (auto& [key, row] : rows) {
      row.row.kind = most(row.kinds);
      row.row.cause = most(row.causes);
      row.row.causes = row.causes.size();
      order.push_back(&row);
    }
    const auto rank = [&](const DifferenceRow& row) {
      const std::int64_t there = row.at_peak.count() * (diff_.at_b ? 1 : -1);
      return std::tuple{-there, -std::max(row.bytes, -row.bytes).count()};
    };
    std::ranges::stable_sort(order, [&](const Row* x, const Row* y) { return rank(x->row) < rank(y->row); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i]->place = i;
      diff_.rows.push_back(order[i]->row);
    }
    for (BufferDifference& each : diff_.buffers) each.row = rows.at(key_of(each)).place;
  }

  bool by_op_;
  Side a_, b_;
  std::vector<std::uint32_t> of_a_, of_b_;  // by buffer: its counterpart
  TraceDiff diff_;
};

}  // namespace

TraceDiff diff_traces(const Trace& a, const Trace& b) { return Diff{a, b}.run(); }

}  // namespace tidepool
