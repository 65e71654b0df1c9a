#include "traces/import/steps.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace tidepool {
namespace {

constexpr std::size_t kGram = 4;             // letters of a piece; see Rows for letters
constexpr std::size_t kStepCandidates = 12;  // most periods that are tried for each length of pieces
constexpr std::size_t kMostSlack = 32;       // most letters between the expected and the real position of a piece
constexpr std::size_t kMostRounds = 32;      // most rounds of a loop within a step
constexpr std::uint32_t kNoStep = std::numeric_limits<std::uint32_t>::max();

/// The names of ops as a text: a name is a letter, and a row of equal letters counts as one.
struct Rows {
  std::vector<std::uint32_t> letters;
  std::vector<std::uint32_t> first;  ///< by row, and one past the end: its first op

  explicit Rows(std::span<const std::uint32_t> names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (i == 0 || names[i] != names[i - 1]) {
        letters.push_back(names[i]);
        first.push_back(static_cast<std::uint32_t>(i));
      }
    first.push_back(static_cast<std::uint32_t>(names.size()));
  }
  std::size_t size() const { return letters.size(); }
  std::size_t ops(std::size_t row) const { return first[row + 1] - first[row]; }
};

/// Pieces of four letters `stride` apart: where each stands, and which are equal.
struct Grams {
  std::vector<std::uint32_t> places;  ///< of all pieces: equal ones side by side, in the order of the text
  std::vector<std::uint32_t> kind;    ///< by place

  Grams(std::span<const std::uint32_t> letters, std::size_t stride) {
    const std::size_t reach = stride * (kGram - 1);
    if (letters.size() <= reach) return;
    places.resize(letters.size() - reach);
    std::iota(places.begin(), places.end(), 0U);
    const auto gram = [&](std::size_t at) {
      return std::array{letters[at], letters[at + stride], letters[at + 2 * stride], letters[at + 3 * stride]};
    };
    std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{gram(a), a} < std::pair{gram(b), b};
    });
    kind.resize(places.size());
    std::uint32_t kinds = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i > 0 && gram(places[i]) != gram(places[i - 1])) ++kinds;
      kind[places[i]] = kinds;
    }
  }

  /// Distances from a piece to the next equal one, the most frequent ones first.
  std::vector<std::size_t> distances() const {
    std::map<std::size_t, std::size_t> count;
    for (std::size_t i = 1; i < places.size(); ++i)
      if (kind[places[i]] == kind[places[i - 1]]) ++count[places[i] - places[i - 1]];
    std::vector<std::pair<std::size_t, std::size_t>> found{count.begin(), count.end()};
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    found.resize(std::min(found.size(), kStepCandidates));
    std::vector<std::size_t> best;
    for (const auto& [distance, neighbours] : found) best.push_back(distance);
    return best;
  }
};

/// The part of the rows that a period explains.
class Measure {
 public:
  Measure(const Rows& rows, const Grams& grams, std::span<const std::int64_t> live, std::size_t period)
      : rows_{rows}, live_{live}, period_{period}, slack_{std::min(kMostSlack, period / 8)} {
    find_images(grams);
    explained_.assign(rows.size(), false);
    find_runs();
    join_runs();
  }

  const std::vector<FoundStep>& steps() const { return steps_; }  // in ops
  std::size_t ops() const {
    std::size_t ops = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) ops += explained_[row] ? rows_.ops(row) : 0;
    return ops;
  }
  /// The explained share of a letter's rows, summed over all letters.
  double kinds(std::span<const std::uint32_t> count) const {
    double kinds = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (explained_[row]) kinds += 1.0 / count[rows_.letters[row]];
    return kinds;
  }

 private:
  using Chain = std::vector<FoundStep>;  // in rows
  struct Run {
    std::size_t first, last;  // rows of which most are found again
    Chain chain;
    std::vector<std::uint32_t> letters;  // each once, in order
  };

  /// Finds the image of each piece: the equal piece that is nearest to the place one period later, if it is at most
  /// slack_ rows away from that place.
  void find_images(const Grams& grams) {
    std::vector<std::uint32_t> image(grams.places.size(), kNoStep);
    for (std::size_t first = 0, last = 0; first < grams.places.size(); first = last) {
      const std::uint32_t kind = grams.kind[grams.places[first]];
      while (last < grams.places.size() && grams.kind[grams.places[last]] == kind) ++last;
      std::size_t near = first;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t wanted = grams.places[i] + period_;
        const auto off = [&](std::size_t at) {
          const std::size_t place = grams.places[at];
          return place > wanted ? place - wanted : wanted - place;
        };
        while (near + 1 < last && off(near + 1) <= off(near)) ++near;
        if (off(near) <= slack_ && wanted < rows_.size()) image[grams.places[i]] = grams.places[near];
      }
    }
    image_.assign(rows_.size(), kNoStep);
    for (std::uint32_t back = 0; back < kGram; ++back)
      for (std::size_t i = 0; i < image.size(); ++i)
        if (image[i] != kNoStep && image_[i + back] == kNoStep) image_[i + back] = image[i] + back;
  }

  /// Finds the parts in which at least two of three rows have an image.
  void find_runs() {
    std::size_t first = 0, last = 0, score = 0, best = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (image_[row] != kNoStep) {
        ++score;
      } else if (score >= 2 && best - (score - 2) <= period_ / 2) {
        score -= 2;
      } else {
        add_run(first, last);
        first = last = row + 1;
        score = best = 0;
      }
      if (score > best) best = score, last = row + 1;
    }
    add_run(first, last);
  }

  void add_run(std::size_t first, std::size_t last) {
    Run run{first, last, steps_from(first, last), {}};
    if (run.chain.size() < 2) return;
    if (!live_.empty()) {
      Chain later = steps_from(first + quieter(run.chain), last);
      if (later.size() >= 2) run.chain = std::move(later);
      if (!level(run.chain)) return;
    }
    for (std::size_t row = first; row < last; ++row) run.letters.push_back(rows_.letters[row]);
    std::sort(run.letters.begin(), run.letters.end());
    run.letters.erase(std::unique(run.letters.begin(), run.letters.end()), run.letters.end());
    runs_.push_back(std::move(run));
  }

  /// Joins the runs that are like the run with the most kinds of ops.
  void join_runs() {
    if (runs_.empty()) return;
    const Run& main = *std::max_element(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) {
      return std::pair{a.letters.size(), a.last - a.first} < std::pair{b.letters.size(), b.last - b.first};
    });
    for (const Run& run : runs_) {
      if (run.letters.size() * 3 < main.letters.size() * 2) continue;
      std::vector<std::uint32_t> both;
      std::set_intersection(run.letters.begin(), run.letters.end(), main.letters.begin(), main.letters.end(),
                            std::back_inserter(both));
      if (both.size() * 3 < main.letters.size() * 2 || both.size() * 3 < run.letters.size() * 2) continue;
      for (const FoundStep& step : run.chain)
        if (steps_.empty() || rows_.first[step.first] >= steps_.back().last)
          steps_.push_back({rows_.first[step.first], rows_.first[step.last]});
      for (std::size_t row = run.first; row < run.last; ++row)
        if (image_[row] != kNoStep) explained_[row] = explained_[image_[row]] = true;
    }
  }

  /// Each step begins at the image of the start of the step before it. Most of the rows [first, last) have images.
  Chain steps_from(std::size_t first, std::size_t last) const {
    Chain chain;
    if (first >= last) return chain;
    std::size_t begin = first;
    while (begin + slack_ < last) {
      std::size_t known = begin;
      while (image_[known] == kNoStep) ++known;                  // ends, since the last row has an image
      const std::size_t next = image_[known] - (known - begin);  // an image comes after its row
      chain.push_back({begin, next});
      begin = next;
    }
    if (chain.empty() || begin > last + slack_) return chain;
    std::size_t known = std::min(begin, last) - 1;
    while (known > first && image_[known] == kNoStep) --known;
    const std::size_t end = image_[known] + (begin - known);
    if (end <= rows_.size()) chain.push_back({begin, end});
    return chain;
  }

  std::int64_t live_at(std::size_t row) const { return live_[rows_.first[row]]; }
  std::int64_t swing(const FoundStep& step) const {
    const auto [low, high] =
        std::minmax_element(live_.begin() + rows_.first[step.first], live_.begin() + rows_.first[step.last - 1] + 1);
    return *high - *low;
  }

  /// The number of rows by which steps should begin later: 0, unless much fewer bytes are live there.
  std::size_t quieter(const Chain& chain) const {
    const auto live_behind = [&](std::size_t rows) {
      std::int64_t sum = 0;
      for (const FoundStep& step : chain)
        sum += live_at(std::min(step.first + rows, step.last - 1)) / std::ssize(chain);
      return sum;
    };
    std::int64_t least = live_behind(0), swings = 0;
    for (const FoundStep& step : chain) swings += swing(step) / std::ssize(chain);
    const std::int64_t enough = least - swings / 4;
    std::size_t best = 0;
    for (std::size_t rows = 1; rows < period_; ++rows)
      if (const std::int64_t live = live_behind(rows); live < least && live < enough) {
        least = live;
        best = rows;
      }
    return best;
  }

  /// Whether at least half of the steps but the first end with about as many live bytes as they began with.
  bool level(const Chain& chain) const {
    std::size_t level = 0, checked = 0;
    for (std::size_t i = 1; i < chain.size() && chain[i].last < rows_.size(); ++i, ++checked)
      level += std::abs(live_at(chain[i].last) - live_at(chain[i].first)) <= swing(chain[i]) / 4;
    return level * 2 >= checked;
  }

  const Rows& rows_;
  std::span<const std::int64_t> live_;
  std::size_t period_, slack_;
  std::vector<std::uint32_t> image_;  // by row: the row in its place in the image of a piece that contains it
  std::vector<bool> explained_;       // by row: whether it has an image in one of the joined runs, or is such an image
  std::vector<Run> runs_;
  std::vector<FoundStep> steps_;
};

}  // namespace

std::vector<FoundStep> find_steps(std::span<const std::uint32_t> names, std::span<const std::int64_t> live_bytes) {
  const Rows rows{names};
  const Grams grams{rows.letters, 1};
  std::vector<std::size_t> periods = grams.distances();
  for (const std::size_t period : Grams{grams.kind, kGram}.distances()) periods.push_back(period);
  std::sort(periods.begin(), periods.end());
  periods.erase(std::unique(periods.begin(), periods.end()), periods.end());

  std::vector<std::uint32_t> count(names.empty() ? 0 : *std::max_element(names.begin(), names.end()) + 1U);
  for (const std::uint32_t letter : rows.letters) ++count[letter];
  const auto recurring = std::count_if(count.begin(), count.end(), [](std::uint32_t times) { return times > 1; });

  struct Candidate {
    std::size_t period = 0, ops = 0;
    double kinds = 0;
    std::vector<FoundStep> steps;
  };
  std::vector<Candidate> candidates;
  double enough = static_cast<double>(recurring) * 0.55;
  for (const std::size_t period : periods) {
    const Measure measure{rows, grams, live_bytes, period};
    if (measure.steps().empty()) continue;
    candidates.push_back({period, measure.ops(), measure.kinds(count), measure.steps()});
    enough = std::max(enough, candidates.back().kinds * 0.6);
  }
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.kinds < enough) continue;
    const auto is_epoch_of = [&](const Candidate& inner) {
      return candidate.period > inner.period * kMostRounds && inner.ops * 10 >= candidate.ops * 9 &&
             inner.kinds * 10 >= candidate.kinds * 8;
    };
    if (best == nullptr || (candidate.ops >= best->ops + 3 + best->ops / 500 && !is_epoch_of(*best))) best = &candidate;
  }
  return best == nullptr ? std::vector<FoundStep>{} : best->steps;
}

}  // namespace tidepool
