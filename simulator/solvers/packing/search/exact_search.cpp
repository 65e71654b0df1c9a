#include "simulator/solvers/packing/search/exact_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kLarge = 512;  // a problem with at least this many sections is large
// Of adjacent sections with equal floors and slack, about this many at most are compared.
constexpr std::uint32_t kSamples = 512;

}  // namespace

ExactSearch::ExactSearch(const PackingProblem& problem)
    : problem_{&problem}, skyline_{problem, 0}, weight_(problem.sections, 1.0), counts_(problem.sections) {
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i) {
    std::int64_t sections = 0;
    for (const SectionRange range : problem.lives(problem.pieces[i])) sections += range.last - range.first;
    length_.push_back(sections);
    if (problem.lives(problem.pieces[i]).size() > 1) gapped_.push_back(i);
  }
}

ExactSearch::Answer ExactSearch::run(std::int64_t capacity, std::uint64_t failures, SearchRule rule,
                                     const std::function<bool()>& interrupted) {
  capacity_ = capacity;
  rule_ = rule;
  failures_ = failures;
  if (rule.forget) std::fill(weight_.begin(), weight_.end(), 1.0);
  stopped_ = false;
  interrupted_ = &interrupted;
  frames_.clear();
  ranges_.clear();
  parts_.clear();
  candidates_.clear();
  if (problem_->pieces.empty()) return Answer::kFound;
  if (!skyline_.reset(capacity)) return Answer::kNone;
  ranges_.push_back({0, problem_->sections});
  if (search({0, 1})) return Answer::kFound;
  return stopped_ ? Answer::kLimit : Answer::kNone;
}

bool ExactSearch::search(Part whole) {
  split(whole);
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (!enter(parts_[k])) return false;
    const std::size_t bottom = frames_.size();
    while (frames_.size() >= bottom) {
      if (!advance(frames_.back())) {
        const Frame& frame = frames_.back();
        if (!stopped_) failed_.insert(frame.key);
        candidates_.resize(frame.candidates);
        frames_.pop_back();
        if (frames_.size() < bottom) return false;
        revert(frames_.back());
        continue;
      }
      while (frames_.size() >= bottom && descend(frames_.back())) {
        const Frame& frame = frames_.back();
        ranges_.resize(frame.ranges);
        parts_.resize(frame.parts);
        candidates_.resize(frame.candidates);
        frames_.pop_back();
      }
    }
  }
  return true;
}

/// Enters the next part that the alternative left. @return  whether all parts are solved
bool ExactSearch::descend(Frame& frame) {
  if (frame.next_part == parts_.size()) return true;
  const std::size_t self = frames_.size() - 1;
  if (!enter(parts_[frame.next_part++])) revert(frames_[self]);
  return false;
}

void ExactSearch::revert(Frame& frame) {
  skyline_.undo(frame.mark);
  ranges_.resize(frame.ranges);
  parts_.resize(frame.parts);
}

/// Appends a part to the path. @return  false if the part is known to fail, or the search has to end
bool ExactSearch::enter(Part part) {
  constexpr std::uint64_t kAsk = 64, kNodeWork = 100;
  work_ += kNodeWork;
  for (const SectionRange range : sections_of(part)) work_ += range.last - range.first;
  if (stopped_ || (++nodes_ % kAsk == 0 && *interrupted_ && (*interrupted_)())) {
    stopped_ = true;
    return false;
  }
  Frame frame;
  frame.part = part;
  frame.mark = skyline_.mark();
  frame.ranges = ranges_.size();
  frame.parts = parts_.size();
  frame.next = frame.candidates = candidates_.size();
  frame.key.low = static_cast<std::uint64_t>(capacity_) * 0x9e3779b97f4a7c15U;  // a failure holds for one capacity
  for (const SectionRange range : sections_of(part))
    for (std::uint32_t s = range.first; s < range.last; ++s) {
      frame.key.low += skyline_.key_low(s);
      frame.key.high += skyline_.key_high(s);
    }
  if (failed_.contains(frame.key)) return false;
  if (const auto span = level_span(part)) {
    candidates_.push_back(*span);
  } else {
    frame.section = choose(part);
    gather_candidates(frame.section);
    frame.may_waste = skyline_.slack(frame.section) > 0 && problem_->pieces[candidates_[frame.candidates]].fixed < 0;
  }
  frame.end = candidates_.size();
  frames_.push_back(frame);
  return true;
}

/// Applies the next alternative that does not fail at once, and finds the parts that it leaves.
bool ExactSearch::advance(Frame& frame) {
  while (!stopped_) {
    if (frame.next < frame.end) {
      const std::size_t k = frame.next++;
      const auto kind = problem_->pieces[candidates_[k]].kind;
      bool seen = false;
      for (std::size_t j = frame.candidates; j < k && !seen; ++j) seen = problem_->pieces[candidates_[j]].kind == kind;
      if (seen) continue;
      skyline_.place(candidates_[k]);
    } else if (std::exchange(frame.may_waste, false)) {
      const std::int64_t next = level_after(frame);
      if (next > skyline_.floor(frame.section) + skyline_.slack(frame.section)) return false;
      for (std::size_t k = frame.candidates; k < frame.end; ++k) skyline_.raise(candidates_[k], next);
    } else {
      return false;
    }
    if (skyline_.settle(sections_of(frame.part))) {
      split(frame.part);
      frame.next_part = frame.parts;
      return true;
    }
    weight_[skyline_.failed()] += 1;
    skyline_.undo(frame.mark);
    if (failures_-- == 0) stopped_ = true;
  }
  return false;
}

/// The least level above the section's floor at which one of its pieces may rest.
std::int64_t ExactSearch::level_after(const Frame& frame) const {
  const std::int64_t floor = skyline_.floor(frame.section);
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t k = 0; k < skyline_.waiting(frame.section); ++k)
    if (const std::int64_t low = skyline_.low(skyline_.waiter(frame.section, k)); low > floor)
      next = std::min(next, low);
  for (std::size_t k = frame.candidates; k < frame.end && next > floor + 1; ++k)
    next = std::min(next, skyline_.next_rest(candidates_[k]));
  return next;
}

std::vector<std::int64_t> ExactSearch::offsets() const {
  std::vector<std::int64_t> offsets(problem_->pieces.size());
  for (std::uint32_t i = 0; i < offsets.size(); ++i) offsets[i] = skyline_.low(i);
  return offsets;
}

/// Appends to parts_ the parts that share no section with each other, the small ones first: they fail fast.
void ExactSearch::split(Part whole) {
  const std::size_t first_part = parts_.size(), first_range = ranges_.size();
  for (std::size_t k = whole.first; k < whole.last; ++k) {
    const SectionRange range = ranges_[k];
    for (std::uint32_t s = range.first; s < range.last;) {
      if (skyline_.waiting(s) == 0) {
        ++s;
        continue;
      }
      const std::uint32_t first = s++;
      while (s < range.last && skyline_.joined(s)) ++s;
      parts_.push_back({ranges_.size(), ranges_.size() + 1});
      ranges_.push_back({first, s});
    }
  }
  if (parts_.size() - first_part < 2) return;
  if (!gapped_.empty()) join_gaps(first_part, first_range);
  const auto sections = [&](Part part) {
    std::uint32_t sum = 0;
    for (const SectionRange range : sections_of(part)) sum += range.last - range.first;
    return sum;
  };
  std::stable_sort(parts_.begin() + static_cast<std::ptrdiff_t>(first_part), parts_.end(),
                   [&](Part a, Part b) { return sections(a) < sections(b); });
}

/// Unites parts that share a waiting piece with gaps. Each part is one range so far.
void ExactSearch::join_gaps(std::size_t first_part, std::size_t from) {
  const auto first = ranges_.begin() + static_cast<std::ptrdiff_t>(from);
  const std::size_t count = parts_.size() - first_part;
  std::vector<std::uint32_t> leader(count);
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&](std::uint32_t a) {
    while (leader[a] != a) a = leader[a] = leader[leader[a]];
    return a;
  };
  const auto part_at = [&](std::uint32_t section) {
    const auto after = std::upper_bound(first, ranges_.end(), section,
                                        [](std::uint32_t value, SectionRange range) { return value < range.first; });
    return static_cast<std::uint32_t>(after - first - 1);
  };
  for (const std::uint32_t i : gapped_) {
    if (skyline_.placed(i)) continue;
    const auto lives = problem_->lives(problem_->pieces[i]);
    if (lives.front().first < first->first || lives.front().first >= ranges_.back().last) continue;
    const std::uint32_t one = part_at(lives.front().first);
    if (lives.front().first >= ranges_[from + one].last) continue;  // the piece is in another part of the parent state
    for (const SectionRange range : lives.subspan(1)) {
      const std::uint32_t a = find(one), b = find(part_at(range.first));
      leader[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<SectionRange> joined;
  std::vector<Part> united;
  for (std::uint32_t k = 0; k < count; ++k) {
    if (find(k) != k) continue;
    united.push_back({from + joined.size(), 0});
    for (std::uint32_t other = k; other < count; ++other)
      if (find(other) == k) joined.push_back(ranges_[from + other]);
    united.back().last = from + joined.size();
  }
  std::copy(joined.begin(), joined.end(), first);
  parts_.resize(first_part);
  parts_.insert(parts_.end(), united.begin(), united.end());
}

/// A piece that lives in all sections of the part, if all of them have the same floor.
std::optional<std::uint32_t> ExactSearch::level_span(Part part) const {
  if (part.last - part.first > 1 || problem_->has_fixed || problem_->has_alignment) return {};
  const SectionRange range = ranges_[part.first];
  std::optional<std::uint32_t> span;
  for (std::uint32_t k = 0; k < skyline_.waiting(range.first) && !span; ++k) {
    const std::uint32_t i = skyline_.waiter(range.first, k);
    const auto lives = problem_->lives(problem_->pieces[i]);
    if (lives.size() == 1 && lives.front().last == range.last) span = i;
  }
  for (std::uint32_t s = range.first + 1; s < range.last && span; ++s)
    if (skyline_.floor(s) != skyline_.floor(range.first)) return {};
  return span;
}

double ExactSearch::worth(std::uint32_t piece) const {
  if (rule_.piece == SearchRule::Piece::kGuided) return -ranks_[piece];
  const auto length = static_cast<double>(length_[piece]), size = static_cast<double>(problem_->pieces[piece].size);
  const double worth = rule_.piece == SearchRule::Piece::kLongest       ? length
                       : rule_.piece == SearchRule::Piece::kLargestArea ? length * size
                                                                        : size;
  if (rule_.shuffle == 0) return worth;
  constexpr double kNoise = 0.5 / 4294967296.0;  // raises a worth by up to a half
  return worth * (1 + kNoise * static_cast<double>(spread(rule_.shuffle ^ spread(piece)) >> 32));
}

void ExactSearch::gather_candidates(std::uint32_t section) {
  const std::size_t from = candidates_.size();
  for (std::uint32_t k = 0; k < skyline_.waiting(section); ++k)
    if (const std::uint32_t i = skyline_.waiter(section, k); skyline_.low(i) == skyline_.floor(section))
      candidates_.push_back(i);
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(from), candidates_.end(),
            [&](std::uint32_t a, std::uint32_t b) {
              if (const double x = worth(a), y = worth(b); x != y) return x > y;
              if (length_[a] != length_[b]) return length_[a] > length_[b];
              if (problem_->pieces[a].size != problem_->pieces[b].size)
                return problem_->pieces[a].size > problem_->pieces[b].size;
              return a < b;
            });
}

/// Whether every piece that can lie at the floor of the section may be placed now: no section in which it lives has a
/// lower floor.
bool ExactSearch::movable(std::uint32_t section) const {
  if (gapped_.empty()) return true;
  for (std::uint32_t k = 0; k < skyline_.waiting(section); ++k) {
    const std::uint32_t i = skyline_.waiter(section, k);
    const auto lives = problem_->lives(problem_->pieces[i]);
    if (lives.size() == 1 || skyline_.low(i) != skyline_.floor(section)) continue;
    for (const SectionRange range : lives)
      for (std::uint32_t s = range.first; s < range.last; ++s)
        if (skyline_.floor(s) < skyline_.floor(section)) return false;
  }
  return true;
}

/// Number of branches at the section: pieces that can lie at the floor, and one more if the floor may rise. Stops
/// counting once it is above `most`. In large problems, a section with more than `most` branches is not counted again
/// while its floor stays.
std::uint32_t ExactSearch::count_ways(std::uint32_t section, double most) const {
  std::uint32_t ways = skyline_.slack(section) > 0 ? 1 : 0;
  const std::uint32_t waiting = skyline_.waiting(section);
  const std::int64_t floor = skyline_.floor(section);
  Count& count = counts_[section];
  if (problem_->sections >= kLarge && count.floor == floor && count.ways > most) return count.ways;
  for (std::uint32_t k = 0; k < waiting && ways <= most; ++k)
    ways += skyline_.low(skyline_.waiter(section, k)) == floor ? 1U : 0U;
  count = {floor, ways};
  return ways;
}

std::uint32_t ExactSearch::choose(Part part) const {
  using Section = SearchRule::Section;
  constexpr double kMuch = std::numeric_limits<double>::max();
  double best_before = kMuch, best_ways = kMuch, best_after = kMuch;
  std::uint32_t best = 0, lowest = ranges_[part.first].first;
  bool found = false;
  for (const SectionRange range : sections_of(part))
    for (std::uint32_t first = range.first, last; first < range.last; first = last) {
      const std::int64_t floor = skyline_.floor(first);
      for (last = first + 1; last < range.last && skyline_.floor(last) == floor;) ++last;
      if (floor < skyline_.floor(lowest)) lowest = first;
      if ((first > range.first && skyline_.floor(first - 1) < floor) ||
          (last < range.last && skyline_.floor(last) < floor))
        continue;
      const std::uint32_t stride = 1 + (last - first) / kSamples;
      for (std::uint32_t s = first; s < last; ++s) {
        double before = 0, after = 0, scale = 1;
        switch (rule_.section) {
          case Section::kFewest:
            after = static_cast<double>(floor);
            break;
          case Section::kWeighted:
            scale = weight_[s];
            break;
          case Section::kLowest:
            before = static_cast<double>(floor);
            break;
          case Section::kTight:
            before = skyline_.slack(s) > 0 ? 1 : 0;
            scale = weight_[s];
            break;
          case Section::kTightest:
            before = static_cast<double>(skyline_.slack(s));
            scale = weight_[s];
            break;
        }
        if (before > best_before || (before == best_before && s % stride != 0)) continue;
        const double most = before < best_before ? kMuch : best_ways * scale;
        const double ways = count_ways(s, most) / scale;
        if (before == best_before && (ways > best_ways || (ways == best_ways && after >= best_after))) continue;
        if (!movable(s)) continue;
        best_before = before;
        best_ways = ways;
        best_after = after;
        best = s;
        found = true;
      }
    }
  return found ? best : lowest;
}

}  // namespace tidepool
