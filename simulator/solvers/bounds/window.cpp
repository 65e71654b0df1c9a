#include "simulator/solvers/bounds/window.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "simulator/solvers/bounds/absent_sets.hpp"
#include "simulator/solvers/bounds/rerun_curve.hpp"
#include "simulator/solvers/bounds/window_costs.hpp"

namespace tidepool {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();

double to_double(Bytes bytes) { return static_cast<double>(bytes.count()); }

/// Time that every plan loses before the ops at the positions [from, to].
struct LostStretch {
  std::int64_t from = 0, to = 0;
  LostTime lost;
};

/// The sum of stretches that do not overlap.
struct StretchSum {
  double stall = 0;
  std::size_t count = 0;
  LostTime lost;
};

/// Content that can be recomputed.
struct Lost {
  OpId producer;
  double size = 0;
};

/// Time to recompute content, if the inputs of its producers are there.
RerunCost time_to_make(const std::vector<Lost>& lost, std::span<const Nanos> starts) {
  std::map<OpId, double> made;
  for (const Lost& each : lost) made[each.producer] += each.size;
  std::vector<RerunCost::Piece> pieces;
  for (const auto& [op, bytes] : made)
    pieces.push_back({static_cast<double>((starts[op.index() + 1] - starts[op.index()]).count()), bytes});
  std::sort(pieces.begin(), pieces.end(),
            [](const RerunCost::Piece& a, const RerunCost::Piece& b) { return a.time * b.bytes < b.time * a.bytes; });
  return RerunCost{std::move(pieces)};
}

class WindowSearch {
 public:
  WindowSearch(const Absences& step, const WindowQuery& query)
      : step_{step},
        query_{query},
        n_{static_cast<std::int64_t>(step.load.size())},
        period_{static_cast<double>(step.starts.back().count())},
        first_{query.repeats ? -2 * n_ : 0},
        ready_(static_cast<std::size_t>(query.repeats ? 4 * n_ : n_ + 1)),
        due_(ready_.size()) {}

  WindowBound run() {
    WindowBound result;
    StretchSum most{.stall = -1, .count = 1, .lost = {}};
    const auto consider = [&](std::int64_t p, const LostTime& alone) {
      if (alone.total() > most.stall) most = {alone.total(), 1, alone}, result.at = p;
      result.feasible = result.feasible && alone.total() != kForEver;
    };
    for (const std::int64_t p : instants(kMostInstants)) consider(p, at(p));
    if (most.stall > 0)
      for (const std::int64_t p : around(result.at)) consider(p, at(p));
    if (!result.feasible) return result;
    if (query_.model != nullptr)
      for (const std::int64_t p : instants_of_cuts(result.at)) consider(p, with_inputs(p));
    const StretchSum sum = most_apart();
    if (sum.stall > most.stall) most = sum;
    result.windows = most.count;
    result.lost = most.lost;
    result.stall = std::max(0.0, most.stall * (1 - 1e-6) - 1);
    return result;
  }

 private:
  /// For each of equal parts of the step, the op with the largest load, if the load exceeds the capacity.
  std::vector<std::int64_t> instants(std::int64_t most) const {
    const std::int64_t count = std::min(n_, std::clamp<std::int64_t>(affordable(), 8, most));
    std::vector<std::int64_t> peaks;
    for (std::int64_t part = 0; part < count; ++part) {
      const auto begin = step_.load.begin() + n_ * part / count, end = step_.load.begin() + n_ * (part + 1) / count;
      if (begin == end) continue;
      const auto peak = std::max_element(begin, end);
      if (*peak > query_.capacity) peaks.push_back(peak - step_.load.begin());
    }
    return peaks;
  }

  /// Ops with large loads near a position, as many as time allows: the largest load is not always the most expensive.
  std::vector<std::int64_t> around(std::int64_t p) const {
    const std::int64_t reach = n_ / kMostInstants + 1;
    const std::int64_t count = std::min(affordable() - kMostInstants, kMostInstants);
    std::vector<std::int64_t> near;
    for (std::int64_t k = std::max<std::int64_t>(p - reach, 0); k <= std::min(p + reach, n_ - 1); ++k)
      if (k != p && step_.load[static_cast<std::size_t>(k)] > query_.capacity) near.push_back(k);
    std::stable_sort(near.begin(), near.end(), [&](std::int64_t a, std::int64_t b) {
      return step_.load[static_cast<std::size_t>(a)] > step_.load[static_cast<std::size_t>(b)];
    });
    if (std::ssize(near) > count) near.resize(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    return near;
  }
  /// Some instants of the whole step, the best one known, and some around it.
  std::vector<std::int64_t> instants_of_cuts(std::int64_t best) const {
    std::vector<std::int64_t> chosen = instants(kMostCuts / 2), near = around(best);
    near.resize(std::min(near.size(), static_cast<std::size_t>(kMostCuts / 2)));
    chosen.insert(chosen.end(), near.begin(), near.end());
    chosen.push_back(best);
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
  }
  std::int64_t affordable() const { return 6'400'000 / (static_cast<std::int64_t>(step_.absences.size()) + 1); }

  double time(std::int64_t position) const {
    std::int64_t turn = position / n_, op = position % n_;
    if (op < 0) op += n_, --turn;
    return static_cast<double>(step_.starts[static_cast<std::size_t>(op)].count()) +
           static_cast<double>(turn) * period_;
  }

  /// The bytes absent during op p. away_at() also fills ready_ and due_. An absence that began in the previous
  /// iteration is shifted by one period.
  struct AwayThen {
    double all = 0, on_host = 0, not_due = 0;  // bytes
    std::int64_t last_due = 0;                 // position
    std::vector<Lost> lost;
    // Buffers whose contents are read before p. Without a copy out, the host has such content only if it began there.
    std::vector<Beginning> began;
    std::vector<Bytes> sizes;
  };
  AwayThen away_at(std::int64_t p) {
    AwayThen away;
    away.last_due = p;
    std::fill(ready_.begin(), ready_.end(), 0);
    std::fill(due_.begin(), due_.end(), 0);
    for (const Absence& absence : step_.absences) {
      std::int64_t turn = 0;
      if (absence.first > p || p >= absence.last) {
        if (p + n_ >= absence.last) continue;
        turn = n_;
      }
      const double size = to_double(absence.size);
      away.all += size;
      away.sizes.push_back(absence.size);
      if (absence.beginning && absence.copied_from == Absence::kAlways)
        if (const Beginning& beginning = step_.beginnings[*absence.beginning]; beginning.due < p)
          away.began.push_back(beginning);
      if (absence.copied_from == Absence::kAlways)
        away.on_host += size;
      else
        ready_[index(absence.copied_from - turn)] += size;
      if (absence.due == Absence::kNever)
        away.not_due += size;
      else
        due_[index(absence.due - turn)] += size;
      if (!query_.remat || turn != 0 || !absence.producer.valid() || size == 0) continue;  // no rerun can make it
      away.lost.push_back({absence.producer, size});
      // It is recomputed before the absence or the step ends.
      away.last_due = std::max(away.last_due, std::min(absence.last, n_));
    }
    return away;
  }
  std::size_t index(std::int64_t position) const { return static_cast<std::size_t>(position - first_); }

  /// The bound of one instant; infinite if the op does not fit even when everything is absent that may be absent.
  LostTime at(std::int64_t p) {
    const AwayThen away = away_at(p);
    const double excess = to_double(excess_of(step_.load[static_cast<std::size_t>(p)] - query_.capacity, away));
    if (away.all < excess) return {.recompute = kForEver};
    const RerunCost again = time_to_make(away.lost, step_.starts);
    const auto least = [&](const Before& out, const Ramp& in) {
      if (!query_.remat) return LostTime{.d2h = out(excess), .h2d = in(excess)};
      return again.least(excess, query_.swap ? away.all : 0, out, in).lost;
    };
    const std::int64_t end = first_ + static_cast<std::int64_t>(due_.size());
    const Before out = before(p, away, first_);
    const Ramp in = behind(p, away, end);
    if (query_.remat) {
      const std::int64_t last = std::max(away.last_due, in.reach);
      if (const LostTime lost = least(out, in); lost.total() > 0) note({out.reach(excess), last, lost});
    } else {
      if (out(excess) > 0) note({out.reach(excess), p, {.d2h = out(excess)}});
      if (in(excess) > 0) note({p + 1, in.reach, {.h2d = in(excess)}});
    }
    return query_.repeats ? once(p, away, in, least) : least(out, in);
  }

  /// In a repeated step, time lost after p must not be counted again before p one iteration later. So one of the two
  /// windows is shortened.
  template <class Least>
  LostTime once(std::int64_t p, const AwayThen& away, const Ramp& in, Least least) const {
    const Before late = before(p, away, std::max(away.last_due, in.reach) - n_ + 1);
    const Before later = before(p, away, away.last_due - n_ + 1);
    const LostTime one = least(late, in), other = least(later, behind(p, away, later.out.reach + n_));
    return one.total() >= other.total() ? one : other;
  }

  /// The bound of one instant that counts the inputs of reruns; zero if nothing is proved.
  LostTime with_inputs(std::int64_t p) {
    const auto instant = static_cast<std::int32_t>(p);
    RerunCurve curve{*query_.model, instant};
    const std::vector<RecomputeCut::Content> contents = curve.cut().contents();
    AwayThen away = away_at(p);
    away.last_due = last_rerun(p, contents);
    add_contents(p, contents, away);
    const double excess = shortage(p, contents);
    if (excess <= 0) return {};
    const auto least = [&](const Before& out, const Ramp& in) { return curve.least(excess, out, in); };
    const Before out = before(p, away, first_);
    const Ramp in = behind(p, away, first_ + static_cast<std::int64_t>(due_.size()));
    if (const LostTime lost = least(out, in); lost.total() > 0)
      note({out.reach(excess), std::max(away.last_due, in.reach), lost});
    return query_.repeats ? once(p, away, in, least) : least(out, in);
  }

  /// The op before which all reruns that make needed content have taken place: the latest next use of such content.
  std::int64_t last_rerun(std::int64_t p, const std::vector<RecomputeCut::Content>& contents) const {
    std::int64_t last = p;
    for (const RecomputeCut::Content& content : contents)
      if (content.needed && query_.model->item(content.version).replaceable)
        last = std::max<std::int64_t>(last, query_.model->next_need(content.version, static_cast<std::int32_t>(p)));
    return last;
  }

  /// The bytes needed after op p that are not resident during it.
  double shortage(std::int64_t p, const std::vector<RecomputeCut::Content>& contents) const {
    const Bytes room = query_.capacity - query_.model->taken(static_cast<std::int32_t>(p));
    std::vector<Bytes> sizes;
    Bytes all, needed;
    for (const RecomputeCut::Content& content : contents) {
      sizes.emplace_back(query_.model->item(content.version).bytes);
      all += sizes.back();
      if (content.needed) needed += sizes.back();
    }
    // All that is resident is a sum of whole sizes.
    const Bytes absent = all > room ? least_absent(sizes, all - room) : Bytes{};
    return to_double(needed - (all - absent));
  }

  /// Adds content that may be on the host during op p although no absence covers p: content that only reruns read, and
  /// outputs of the step that the next iteration does not read.
  void add_contents(std::int64_t p, const std::vector<RecomputeCut::Content>& contents, AwayThen& away) {
    const auto covers = [&](const Absence& absence) {
      return (absence.first <= p && p < absence.last) || p + n_ < absence.last;
    };
    std::vector<bool> covered(query_.model->trace().buffers().size());
    for (const Absence& absence : step_.absences)
      if (covers(absence)) covered[absence.buffer.index()] = true;
    for (const RecomputeCut::Content& content : contents) {
      const RecomputeModel::Item& item = query_.model->item(content.version);
      const BufferId buffer = query_.model->trace().version(content.version).buffer;
      if (content.needed && covered[buffer.index()]) continue;
      const auto size = static_cast<double>(item.bytes);
      if (item.made >= 0)
        ready_[index(item.made + 1)] += size;
      else
        away.on_host += size;
      if (content.needed)
        away.not_due += size;
      else
        due_[index(away.last_due)] += size;
    }
  }

  Bytes excess_of(Bytes excess, const AwayThen& away) const {
    return excess > Bytes{static_cast<std::int64_t>(away.all)} ? excess : least_absent(away.sizes, excess);
  }
  /// The least sum of some of `sizes` that is at least `excess`. The excess itself without `whole`, or if there are
  /// many sizes.
  Bytes least_absent(std::span<const Bytes> sizes, Bytes excess) const {
    constexpr std::size_t kMost = 32;           // with more sizes, some sum is close to any excess
    constexpr std::int64_t kMostWork = 10'000;  // takes some 10 us
    return !query_.whole || sizes.size() > kMost ? excess : least_sum(sizes, excess, kMostWork);
  }

  /// Time lost before position p, by copies out that begin at `from` or later.
  Before before(std::int64_t p, const AwayThen& away, std::int64_t from) const {
    Ramp out{.rate = query_.out_rate, .reach = p};
    double sum = away.on_host;
    for (std::int64_t k = first_; k <= p; ++k) {
      if (ready_[index(k)] > 0 && k >= from) out.consider(sum, time(p) - time(k), k);
      sum += ready_[index(k)];
    }
    return {out, with_beginnings(p, away)};
  }
  /// Time lost before position p by copies out together with copies in of content that began on the host.
  Ramp with_beginnings(std::int64_t p, const AwayThen& away) const {
    Ramp both{.rate = query_.out_rate + query_.in_rate, .reach = p};
    double later = 0, all = 0;
    for (const Beginning& beginning : away.began) all += to_double(beginning.size);
    std::map<std::int64_t, double, std::greater<>> by_due;
    for (const Beginning& beginning : away.began) by_due[beginning.due] += to_double(beginning.size);
    for (const auto& [due, size] : by_due) {
      const double time_of_both = query_.in_rate * time(due) + query_.out_rate * time(p);
      both.consider(away.on_host - all + later, time_of_both / both.rate, 0);
      later += size;
    }
    return both;
  }
  /// Time lost after position p, by copies back that are due before `end`.
  Ramp behind(std::int64_t p, const AwayThen& away, std::int64_t end) const {
    Ramp in{.rate = query_.in_rate, .reach = p};
    double sum = away.not_due;
    for (std::int64_t k = first_ + static_cast<std::int64_t>(due_.size()) - 1; k > p; --k) {
      if (due_[index(k)] > 0 && k < end) in.consider(sum, time(k) - time(p), k);
      sum += due_[index(k)];
    }
    return in;
  }

  void note(const LostStretch& stretch) {
    // In a repeated step, time lost before position n is time lost before position 0.
    if (stretch.from >= 0 && (!query_.repeats || stretch.to < n_)) stretches_.push_back(stretch);
  }

  /// The largest sum of stretches that do not overlap.
  StretchSum most_apart() {
    std::sort(stretches_.begin(), stretches_.end(),
              [](const LostStretch& a, const LostStretch& b) { return a.to < b.to; });
    std::vector<StretchSum> best{{}};  // best[i]: of the first i stretches
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      const auto before =
          std::upper_bound(stretches_.begin(), stretches_.begin() + static_cast<std::ptrdiff_t>(i), stretches_[i].from,
                           [](std::int64_t from, const LostStretch& s) { return from <= s.to; });
      StretchSum longer = best[static_cast<std::size_t>(before - stretches_.begin())];
      longer.stall += stretches_[i].lost.total();
      ++longer.count;
      longer.lost += stretches_[i].lost;
      best.push_back(longer.stall > best.back().stall ? longer : best.back());
    }
    return best.back();
  }

  static constexpr std::int64_t kMostInstants = 64, kMostCuts = 32;
  const Absences& step_;
  const WindowQuery& query_;
  const std::int64_t n_;
  const double period_;
  const std::int64_t first_;         // the earliest position
  std::vector<double> ready_, due_;  // by position: absent bytes that may be copied out from there on, or are due there
  std::vector<LostStretch> stretches_;
};

}  // namespace

double fastest(const Link& link, std::span<const Absence> absences) {
  double rate = 0;
  const auto consider = [&](Bytes size) {
    rate = std::max(rate, to_double(size) / static_cast<double>(std::max(link.time(size), Nanos{1}).count()));
  };
  Bytes largest;
  for (const Absence& absence : absences) {
    consider(absence.size);
    largest = std::max(largest, absence.size);
  }
  // Between two measured sizes, size / time is largest at one of the two.
  for (const TimedSize& measured : link.times)
    if (measured.size < largest) consider(measured.size);
  return rate;
}

double fastest_out(const Machine& machine, std::span<const Absence> absences) {
  const bool tiers = machine.storage.capacity > Bytes{};
  return fastest(machine.d2h, absences) + (tiers ? fastest(machine.storage.write, absences) : 0);
}

double fastest_in(const Machine& machine, std::span<const Absence> absences) {
  const bool tiers = machine.storage.capacity > Bytes{};
  return fastest(machine.h2d, absences) + (tiers ? fastest(machine.storage.read, absences) : 0);
}

WindowBound window_bound(const Absences& step, const WindowQuery& query) {
  if (step.load.empty()) return {};
  return WindowSearch{step, query}.run();
}

}  // namespace tidepool
