#include "simulator/bounds/window.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "simulator/bounds/absent_sets.hpp"

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

/// max(0, bytes / rate - slack) ns, between the instant and the position `reach`.
struct Ramp {
  double rate = 1, slack = kForEver;
  std::int64_t reach = 0;
  double operator()(double bytes) const { return std::max(0.0, bytes / rate - slack); }
  /// Takes into account that all but `others` bytes are copied between the instant and a position `between` ns away.
  void consider(double others, double between, std::int64_t position) {
    if (const double s = others / rate + between; s < slack) slack = s, reach = position;
  }
};

/// Time lost before an instant: the larger of the cost of copies out, and of the joint cost of copies out and copies in
/// of content that began on the host.
struct Before {
  Ramp out, both;
  double operator()(double bytes) const { return std::max(out(bytes), both(bytes)); }
  std::int64_t reach(double bytes) const {
    return both(bytes) > out(bytes) ? std::min(both.reach, out.reach) : out.reach;
  }
};

/// Time to recompute z bytes, least time per byte first.
class Recompute {
 public:
  Recompute(const std::vector<Lost>& lost, std::span<const Nanos> starts) {
    std::map<OpId, double> made;
    for (const Lost& each : lost) made[each.producer] += each.size;
    for (const auto& [op, bytes] : made)
      pieces_.push_back({static_cast<double>((starts[op.index() + 1] - starts[op.index()]).count()), bytes});
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.time * b.bytes < b.time * a.bytes; });
  }

  /// The least of before(E - z) + max(after(E - z), C(z)) over all z that can be recomputed, where at most `swappable`
  /// bytes may be copied. The function is convex and piecewise linear, so the least value is at a corner.
  LostTime least(double excess, double swappable, const Before& before, const Ramp& after) const {
    LostTime best{.recompute = kForEver};
    const auto consider = [&](double z, double time) {
      if (z < 0 || z > excess || excess - z > swappable) return;
      const double out = before(excess - z), in = after(excess - z);
      const LostTime lost = in >= time ? LostTime{.d2h = out, .h2d = in} : LostTime{.d2h = out, .recompute = time};
      if (lost.total() < best.total()) best = lost;
    };
    double z = 0, time = 0;
    consider(0, 0);
    for (const Piece& piece : pieces_) {
      const double per_byte = piece.time / piece.bytes;
      const auto within = [&](double corner) {
        if (corner > z && corner < z + piece.bytes) consider(corner, time + (corner - z) * per_byte);
      };
      within(excess);
      within(excess - swappable);
      for (const Ramp& ramp : {before.out, before.both}) within(excess - ramp.slack * ramp.rate);
      // The point at which the larger of the two changes.
      if (const double rates = 1 / before.out.rate - 1 / before.both.rate; rates > 0)
        within(excess - (before.out.slack - before.both.slack) / rates);
      within(excess - after.slack * after.rate);
      // after(E - z) = C(z), on this piece
      within((excess / after.rate - after.slack - time + z * per_byte) / (per_byte + 1 / after.rate));
      z += piece.bytes;
      time += piece.time;
      consider(z, time);
    }
    return best;
  }

 private:
  struct Piece {
    double time, bytes;
  };
  std::vector<Piece> pieces_;
};

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
    const auto consider = [&](std::int64_t p) {
      const LostTime alone = at(p);
      if (alone.total() > most.stall) most = {alone.total(), 1, alone}, result.at = p;
      result.feasible = result.feasible && alone.total() != kForEver;
    };
    for (const std::int64_t p : instants()) consider(p);
    if (most.stall > 0)
      for (const std::int64_t p : around(result.at)) consider(p);
    if (!result.feasible) return result;
    const StretchSum sum = most_apart();
    if (sum.stall > most.stall) most = sum;
    result.windows = most.count;
    result.lost = most.lost;
    result.stall = std::max(0.0, most.stall * (1 - 1e-6) - 1);
    return result;
  }

 private:
  /// For each of equal parts of the step, the op with the largest load, if the load exceeds the capacity.
  std::vector<std::int64_t> instants() const {
    const std::int64_t count = std::min(n_, std::clamp<std::int64_t>(affordable(), 8, kMostInstants));
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
    const std::int64_t reach = n_ / kMostInstants + 1, count = std::min(affordable() - kMostInstants, kMostInstants);
    std::vector<std::int64_t> near;
    for (std::int64_t k = std::max<std::int64_t>(p - reach, 0); k <= std::min(p + reach, n_ - 1); ++k)
      if (k != p && step_.load[static_cast<std::size_t>(k)] > query_.capacity) near.push_back(k);
    std::stable_sort(near.begin(), near.end(), [&](std::int64_t a, std::int64_t b) {
      return step_.load[static_cast<std::size_t>(a)] > step_.load[static_cast<std::size_t>(b)];
    });
    if (std::ssize(near) > count) near.resize(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    return near;
  }
  std::int64_t affordable() const { return 6'400'000 / (static_cast<std::int64_t>(step_.absences.size()) + 1); }

  double time(std::int64_t position) const {
    std::int64_t turn = position / n_, op = position % n_;
    if (op < 0) op += n_, --turn;
    return static_cast<double>(step_.starts[static_cast<std::size_t>(op)].count()) +
           static_cast<double>(turn) * period_;
  }

  /// The bytes absent during op p; fills ready_ and due_. An absence that began in the previous iteration is shifted by
  /// one period.
  struct AwayThen {
    double all = 0, on_host = 0, not_due = 0;  // bytes
    std::int64_t last_due = 0;                 // position
    std::vector<Lost> lost;
    std::vector<Beginning> began;  // of contents that are on the host only if they began there
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
      if (!query_.remat || turn != 0 || !absence.producer.valid() || size == 0) continue;  // of another iteration
      away.lost.push_back({absence.producer, size});
      away.last_due = std::max(away.last_due, std::min(absence.last, n_));  // computed again before the step ends
    }
    return away;
  }
  std::size_t index(std::int64_t position) const { return static_cast<std::size_t>(position - first_); }

  /// The bound of one instant; infinite if all that may be absent is not enough.
  LostTime at(std::int64_t p) {
    const AwayThen away = away_at(p);
    const double excess = to_double(excess_of(step_.load[static_cast<std::size_t>(p)] - query_.capacity, away));
    if (away.all < excess) return {.recompute = kForEver};
    const Recompute again{away.lost, step_.starts};
    const auto least = [&](const Before& out, const Ramp& in) {
      if (!query_.remat) return LostTime{.d2h = out(excess), .h2d = in(excess)};
      return again.least(excess, query_.swap ? away.all : 0, out, in);
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
    if (!query_.repeats) return least(out, in);
    // Time lost after p must not be counted again before p one iteration later, so one of the two windows is shortened.
    const Before late = before(p, away, std::max(away.last_due, in.reach) - n_ + 1);
    const Before later = before(p, away, away.last_due - n_ + 1);
    const LostTime one = least(late, in), other = least(later, behind(p, away, later.out.reach + n_));
    return one.total() >= other.total() ? one : other;
  }

  Bytes excess_of(Bytes excess, const AwayThen& away) const {
    constexpr std::size_t kMost = 32;           // with more sizes, some sum is close to any excess
    constexpr std::int64_t kMostWork = 10'000;  // takes some 10 us
    if (!query_.whole || away.sizes.size() > kMost || excess > Bytes{static_cast<std::int64_t>(away.all)})
      return excess;
    return least_sum(away.sizes, excess, kMostWork);
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

  static constexpr std::int64_t kMostInstants = 64;
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
