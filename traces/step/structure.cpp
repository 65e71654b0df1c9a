#include "traces/step/structure.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "traces/step/repeats.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kLeastCovered = 8;

std::uint32_t covers(const PeriodicPart& part) { return (part.last - part.first) / part.period * part.period; }

/// Order of candidates. A candidate is better if it covers more ops; among equals, if its copies are shorter, and then
/// if it is earlier.
struct Worse {
  bool operator()(const PeriodicPart& a, const PeriodicPart& b) const {
    if (covers(a) != covers(b)) return covers(a) < covers(b);
    if (a.period != b.period) return a.period > b.period;
    return a.first > b.first;
  }
};
using Candidates = std::priority_queue<PeriodicPart, std::vector<PeriodicPart>, Worse>;

void add(Candidates& candidates, const PeriodicPart& part) {
  if (part.last >= part.first + 2 * part.period && covers(part) >= kLeastCovered) candidates.push(part);
}

/// Ranges of ops that are in a repeat already, by first op.
using Taken = std::map<std::uint32_t, std::uint32_t>;

/// Whether no op of a part is taken. If some are taken, the free pieces of the part become candidates.
bool is_free(const PeriodicPart& part, const Taken& taken, Candidates& candidates) {
  auto next = taken.upper_bound(part.first);
  if (next != taken.begin() && std::prev(next)->second > part.first) --next;
  if (next == taken.end() || next->first >= part.last) return true;
  std::uint32_t free = part.first;
  for (; next != taken.end() && next->first < part.last; ++next) {
    if (next->first > free) add(candidates, {free, next->first, part.period});
    free = next->second;
  }
  if (free < part.last) add(candidates, {free, part.last, part.period});
  return false;
}

class Folder {
 public:
  Folder(std::span<const std::uint32_t> letters, const std::vector<bool>& begins) : letters_{letters}, begins_{begins} {
    found_.like.resize(letters_.size());
    std::iota(found_.like.begin(), found_.like.end(), 0u);
  }

  Structure run() {
    fold(0, static_cast<std::uint32_t>(letters_.size()), Repeat::kNone);
    for (std::uint32_t i = 0; i < found_.like.size(); ++i) found_.distinct += found_.like[i] == i ? 1 : 0;
    return std::move(found_);
  }

 private:
  /// Finds the repeats among ops [first, last) and in their first copies, and points all other copies to the first.
  void fold(std::uint32_t first, std::uint32_t last, std::uint32_t outer) {
    if (last - first < kLeastCovered) return;
    Candidates candidates;
    for (const PeriodicPart& part : periodic_parts(letters_.subspan(first, last - first)))
      add(candidates, {part.first + first, part.last + first, part.period});
    Taken taken;
    while (!candidates.empty()) {
      const PeriodicPart part = candidates.top();
      candidates.pop();
      if (is_free(part, taken, candidates) && repeats(part)) {
        const std::uint32_t begin = best_begin(part);
        taken[begin] = begin + (part.last - begin) / part.period * part.period;
        periods_[begin] = part.period;
      }
    }
    const auto from = static_cast<std::uint32_t>(found_.repeats.size());
    for (const auto& [begin, end] : taken)
      found_.repeats.push_back({begin, periods_[begin], (end - begin) / periods_[begin], outer});
    for (auto i = from, end = static_cast<std::uint32_t>(found_.repeats.size()); i < end; ++i) {
      const Repeat repeat = found_.repeats[i];
      fold(repeat.first, repeat.first + repeat.period, i);
      for (std::uint32_t op = repeat.first + repeat.period; op < repeat.last(); ++op)
        found_.like[op] = found_.like[op - repeat.period];
    }
  }

  /// Whether the ops of a part really repeat, not only their hashes.
  bool repeats(const PeriodicPart& part) const {
    return std::equal(letters_.begin() + part.first, letters_.begin() + (part.last - part.period),
                      letters_.begin() + (part.first + part.period));
  }

  /// The op at which the copies begin. Among the ops at which they can begin without losing a copy, it is the first one
  /// at which a module begins; if there is none, the first one.
  std::uint32_t best_begin(const PeriodicPart& part) const {
    for (std::uint32_t op = part.first; op <= part.last - covers(part); ++op)
      if (begins_[op]) return op;
    return part.first;
  }

  std::span<const std::uint32_t> letters_;
  const std::vector<bool>& begins_;
  std::map<std::uint32_t, std::uint32_t> periods_;  // periods of the repeats found so far, by first op
  Structure found_;
};

}  // namespace

std::vector<std::uint32_t> op_letters(const Trace& trace, Alike alike) {
  std::unordered_map<std::string, std::uint32_t> letters;
  std::vector<std::uint32_t> text;
  std::string key;
  const auto add = [&key](std::int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const Op& op = trace.ops()[i];
    key.clear();
    add(op.name.valid() ? op.name.value() : 0);
    add(static_cast<std::int64_t>(op.kind));
    add(static_cast<std::int64_t>(op.phase));
    add(op.stream.value());
    add(alike == Alike::kDuration ? op.duration.count() : 0);
    for (const Use& use : trace.uses(OpId{i})) {
      const Buffer& buffer = trace.buffer(trace.version(use.in.valid() ? use.in : use.out).buffer);
      add(static_cast<std::int64_t>(use.access));
      add(static_cast<std::int64_t>(buffer.kind));
      add(buffer.size.count());
    }
    text.push_back(letters.try_emplace(key, static_cast<std::uint32_t>(letters.size())).first->second);
  }
  return text;
}

Structure find_structure(const Trace& trace, Alike alike) {
  std::vector<bool> begins(trace.ops().size(), true);
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] = trace.ops()[i].module != trace.ops()[i - 1].module;
  return find_structure(op_letters(trace, alike), begins);
}

Structure find_structure(std::span<const std::uint32_t> letters, const std::vector<bool>& begins) {
  return Folder{letters, begins}.run();
}

}  // namespace tidepool
