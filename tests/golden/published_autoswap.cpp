#include "tests/golden/published_autoswap.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "traces/base/lines.hpp"

namespace tidepool {
namespace {

/// The events of three iterations of n events are numbered from -n to 2 n - 1: the second iteration begins at 0.
using Index = std::int64_t;

struct Candidate {
  double size = 0;
  Index release = 0, due = 0;
  double score = 0;
  Index out_end = 0, in_begin = 0;
};

double out_time(double size) { return 0.0756 * size + 47200; }
double in_time(double size) { return 0.0823 * size + 9700; }

class Prediction {
 public:
  explicit Prediction(const BlockLog& log) : log_{log}, n_{static_cast<Index>(log.iteration())} {}

  /// Blocks of at least 1 MiB between two accesses, one before and one after the peak of the second iteration, in the
  /// order of their names.
  std::vector<Candidate> candidates() const {
    const Index peak = peak_of(log_.load).second;
    std::map<std::string_view, std::vector<Index>> by_block;
    for (std::size_t i = 0; i < log_.events.size(); ++i)
      by_block[log_.events[i].block].push_back(static_cast<Index>(i) - n_);
    std::vector<Candidate> found;
    for (const auto& [block, accesses] : by_block)
      for (std::size_t i = 1; i < accesses.size(); ++i) {
        const Index before = accesses[i - 1], after = accesses[i];
        const double size = event(after).size;
        if (before < peak && after > peak && !event(after).allocates && size >= 1 << 20)
          found.push_back({size, before, after, 0, 0, 0});
      }
    return found;
  }

  std::vector<Candidate> ranked(GapScore score) const {
    std::vector<Candidate> list = candidates();
    if (score == GapScore::kSwdoa) return ranked_submodular(std::move(list));
    for (std::size_t i = 0; i < list.size(); ++i) {
      Candidate& each = list[i];
      const double spare = event(each.due).time - event(each.release).time - out_time(each.size);
      if (score == GapScore::kDoa)
        each.score = spare;
      else if (score == GapScore::kAoa)
        each.score = spare >= 0 ? spare * each.size : spare / each.size;
      else
        for (Index k = each.release; k < each.due; ++k) each.score += log_.load[i];
    }
    sort_by_score(list);
    return list;
  }

  double overhead(const std::vector<Candidate>& ranked, double limit) const {
    std::vector<Candidate> chosen = select(ranked, limit);
    std::vector<double> load = log_.load;
    return copies_out(chosen, load, limit) + copies_in(chosen, load, limit);
  }

 private:
  const LoggedBlockEvent& event(Index i) const { return log_.events[static_cast<std::size_t>(i + n_)]; }

  static void sort_by_score(std::vector<Candidate>& list) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  }

  /// Adds `bytes` to the load during the events [first, last).
  void add(std::vector<double>& load, Index first, Index last, double bytes) const {
    for (Index i = std::max(first, -n_); i < last; ++i) load[static_cast<std::size_t>(i + n_)] += bytes;
  }

  std::pair<double, Index> peak_of(const std::vector<double>& load) const {
    const auto begin = load.begin() + n_, peak = std::max_element(begin, begin + n_);
    return {*peak, peak - begin};
  }

  /// Repeatedly takes the candidate with the largest sum of the remaining load over its events. Ties keep the order of
  /// the previous sort; at the end all are sorted by the scores with which they were taken.
  std::vector<Candidate> ranked_submodular(std::vector<Candidate> left) const {
    std::vector<double> load = log_.load;
    std::vector<Candidate> list;
    while (!left.empty()) {
      for (Candidate& each : left) {
        each.score = 0;
        for (Index k = each.release; k < each.due; ++k) each.score += load[static_cast<std::size_t>(k + n_)];
      }
      sort_by_score(left);
      add(load, left.front().release, left.front().due, -left.front().size);
      list.push_back(left.front());
      left.erase(left.begin());
    }
    sort_by_score(list);
    return list;
  }

  std::vector<Candidate> select(const std::vector<Candidate>& ranked, double limit) const {
    std::vector<double> load = log_.load;
    std::vector<Candidate> chosen;
    for (const Candidate& each : ranked) {
      add(load, each.release, each.due, -each.size);
      chosen.push_back(each);
      if (peak_of(load).first <= limit) break;
    }
    return chosen;
  }

  /// Two events of the second iteration: the first one above the limit (-1 if that is event 0 or if there is none), and
  /// the one before the last one above the limit (-1 if none is above it after the first one). The search for the last
  /// one includes the first event of the third iteration.
  std::pair<Index, Index> over(const std::vector<double>& load, double limit) const {
    Index first = 0, last = n_;
    for (Index i = 0; i < n_; ++i)
      if (load[static_cast<std::size_t>(i + n_)] > limit) {
        first = i;
        break;
      }
    for (Index i = n_; i > first; --i)
      if (load[static_cast<std::size_t>(i + n_)] > limit) {
        last = i - 1;
        break;
      }
    return {first == 0 ? -1 : first, last == n_ ? -1 : last};
  }

  double copies_out(std::vector<Candidate>& chosen, std::vector<double>& load, double limit) const {
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Candidate& a, const Candidate& b) { return a.release < b.release; });
    double overhead = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Candidate& each = chosen[i];
      Index ready = i > 0 ? std::max(each.release, chosen[i - 1].out_end) : each.release;
      const double end = event(ready).time + out_time(each.size);
      while (ready + 1 < 2 * n_ && end > event(ready).time) ++ready;
      ready = std::min(ready, each.due - 1);
      add(load, ready, each.due, -each.size);
      const Index first = over(load, limit).first;
      if (first != -1 && first <= ready) {
        add(load, first - 1, ready + 1, -each.size);
        ready = first - 1;
      }
      each.out_end = ready;
      overhead += std::max(end - event(ready).time, 0.0);
    }
    return overhead;
  }

  double copies_in(std::vector<Candidate>& chosen, std::vector<double>& load, double limit) const {
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Candidate& a, const Candidate& b) { return a.due > b.due; });
    double overhead = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Candidate& each = chosen[i];
      Index need = i > 0 ? std::min(each.due, chosen[i - 1].in_begin) : each.due;
      const double begin = event(need).time - in_time(each.size);
      while (need > each.release && begin < of_the_iteration_before(need).time) --need;
      need = std::max(need, each.release);
      add(load, need, each.due, each.size);
      const Index last = over(load, limit).second;
      if (last != -1 && last >= need) {
        add(load, need, last + 1, -each.size);
        overhead += event(last).time - begin;
      }
      each.in_begin = need;
    }
    return overhead;
  }

  /// The event whose clock the authors read while they place swap-ins. Its number counts from the first event on;
  /// negative numbers count from the last event back.
  const LoggedBlockEvent& of_the_iteration_before(Index i) const {
    const auto count = static_cast<Index>(log_.events.size());
    return log_.events[static_cast<std::size_t>(i >= 0 ? i : count + i)];
  }

  const BlockLog& log_;
  Index n_;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size() && words.size() <= 4;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(std::abs(value) < 1e20)) return {};
  return value;
}

}  // namespace

BlockLog read_block_log(const Input& events, const Input& loads) {
  BlockLog log;
  Lines lines{events.path(), events.bytes()};
  double first = -1;
  while (lines.next()) {
    if (lines.text().empty()) continue;
    const std::vector<std::string_view> words = words_of(lines.text());
    const auto size = words.size() == 4 ? number(words[2]) : std::nullopt;
    const auto time = size ? number(words[3]) : std::nullopt;
    if (!time) lines.refuse("'{}'; expected an event, a block, a size and a time", excerpt(lines.text()));
    if (first < 0) first = *time;
    log.events.push_back({std::string{words[1]}, *size, *time - first, words[0] == "Malloc"});
  }
  if (log.events.empty() || log.events.size() % 3 != 0)
    throw InputError{
        fmt::format("{}: {} events; expected three iterations of equal length", events.path(), log.events.size())};
  Lines numbers{loads.path(), loads.bytes()};
  while (numbers.next()) {
    if (numbers.text().empty()) continue;
    const auto load = number(numbers.text());
    if (!load) numbers.refuse("'{}'; expected a number of bytes", excerpt(numbers.text()));
    log.load.push_back(*load);
  }
  if (log.load.size() != log.events.size())
    throw InputError{fmt::format("{}: {} loads for {} events", loads.path(), log.load.size(), log.events.size())};
  return log;
}

std::vector<double> published_overheads(const BlockLog& log, GapScore score, const std::vector<double>& limits) {
  const Prediction prediction{log};
  const std::vector<Candidate> ranked = prediction.ranked(score);
  std::vector<double> overheads;
  for (const double limit : limits) overheads.push_back(prediction.overhead(ranked, limit));
  return overheads;
}

}  // namespace tidepool
