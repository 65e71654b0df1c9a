#include "policies/hybrid/tide/local_search.hpp"

#include <algorithm>
#include <bit>

namespace tidepool {

Nanos SearchRandom::exponential(Nanos mean) {
  const std::uint64_t bits = engine_();
  const auto halvings = static_cast<std::int64_t>(std::min(std::countl_zero(bits), 40));
  const auto fraction = static_cast<std::int64_t>((bits << (halvings + 1)) >> 54);  // in [0, 1024)
  // -ln(u) = ln(2) * -log2(u), where log2 is linear between powers of two.
  return Nanos{mean.count() / 1024 * 710 / 1024 * (halvings * 1024 + 1024 - fraction) +
               mean.count() % 1024 * 710 / 1024 * (halvings * 1024 + 1024 - fraction) / 1024};
}

void LocalSearch::add(const Treatments& treatments) {
  const Nanos estimate = evaluator_.evaluate(treatments).period;
  if (estimate == Evaluation::kImpossible) return;
  const Nanos time = confirm_(treatments);
  if (time >= best_time_) return;
  best_ = current_ = treatments;
  best_time_ = time;
  best_estimate_ = estimate_ = estimate;
}

void LocalSearch::weigh(const std::vector<double>& weight) {
  candidates_.clear();
  weight_sums_.clear();
  double sum = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (weight[i] <= 0) continue;
    candidates_.push_back(i);
    weight_sums_.push_back(sum += weight[i]);
  }
}

void LocalSearch::round(std::int64_t moves) {
  if (candidates_.empty() || !found()) return;
  const std::int64_t patience = std::max<std::int64_t>(300, moves / 4);
  // The first temperature grows with the round; it falls to a hundredth (2^-6.64) by its end.
  const Nanos hot = (best_time_ - model_.circle.period()) / 1000 * 90 * std::min<std::int64_t>(moves, 2'000) / 2'000;
  since_best_ = 0;
  current_ = best_;
  estimate_ = best_estimate_;
  for (std::int64_t i = 0; i < moves && !loses_nothing(); ++i) {
    const std::int64_t halvings = 664 * i / (100 * moves), rest = 664 * i % (100 * moves);
    const Nanos start = hot / (std::int64_t{1} << halvings);
    move(start - start * rest / (200 * moves));
    if (++since_best_ <= patience) continue;
    since_best_ = 0;
    current_ = best_;
    estimate_ = best_estimate_;
  }
}

void LocalSearch::set(std::size_t gap, How treatment) {
  undo_.push_back({gap, current_[gap]});
  current_[gap] = treatment;
}

void LocalSearch::move(Nanos temperature) {
  // Ruins pay where content may be recomputed: copies alone are exchanged well one by one.
  const double ruins = drops_ ? 0.25 : 0.05, ones = drops_ ? 0.35 : 0.8;
  ++moves_;
  undo_.clear();
  if (random_.chance(ruins)) {
    ruin();
    if (undo_.empty()) return;
  } else if (const bool one = random_.chance(ones); one) {
    change_one(pick());
  } else {
    exchange(pick());
  }
  const Nanos longest = estimate_ + random_.exponential(temperature);
  const Nanos estimate = evaluator_.evaluate(current_, longest).period;
  if (estimate <= longest && is_confirmed(estimate)) {
    estimate_ = estimate;
    return;
  }
  for (auto each = undo_.rbegin(); each != undo_.rend(); ++each) current_[each->first] = each->second;
}

/// Whether the current plan stays, whose time would let it. A plan that may be the best is confirmed; one that
/// disappoints does not stay.
bool LocalSearch::is_confirmed(Nanos estimate) {
  constexpr double kGate = 0.3;  // chance to confirm a plan that is a little worse by the estimate
  if (estimate == estimate_) return true;
  const Nanos slack = model_.circle.period() / 2'000, error = std::max(Nanos{}, best_time_ - best_estimate_);
  const bool promises =
      estimate < best_estimate_ + (random_.chance(kGate) ? slack : Nanos{}) || estimate + error < best_time_;
  if (!promises || confirmed_ > 20 + moves_ / 10) return true;
  ++confirmed_;
  const Nanos time = confirm_(current_);
  if (time < best_time_) {
    best_ = current_;
    best_time_ = time;
    best_estimate_ = estimate;
    since_best_ = 0;
    return true;
  }
  return time <= estimate + error + slack * 3;
}

std::size_t LocalSearch::pick() {
  const double at = random_.share() * weight_sums_.back();
  const auto found = std::lower_bound(weight_sums_.begin(), weight_sums_.end(), at);
  return candidates_[static_cast<std::size_t>(found - weight_sums_.begin())];
}

How LocalSearch::other_than(std::size_t gap, How treatment) {
  How others[2];
  std::size_t count = 0;
  for (const How each : {How::kKept, How::kCopied, How::kDropped})
    if (each != treatment && (each != How::kDropped || model_.can_drop(gap))) others[count++] = each;
  return others[random_.below(count)];
}

void LocalSearch::change_one(std::size_t gap) { set(gap, other_than(gap, current_[gap])); }

/// Whether two intervals overlap on the circle.
bool LocalSearch::overlap(const Gap& a, const Gap& b) const {
  const auto ops = static_cast<std::uint32_t>(model_.ops());
  const auto meet = [&](std::uint32_t shift_a, std::uint32_t shift_b) {
    return a.release + 1 + shift_a < b.due + shift_b && b.release + 1 + shift_b < a.due + shift_a;
  };
  return meet(0, 0) || meet(ops, 0) || meet(0, ops);
}

/// Changes an interval, and another one that overlaps it: against it, so that the bytes stay about the same.
void LocalSearch::exchange(std::size_t gap) {
  constexpr int kTries = 40;
  const How was = current_[gap], now = other_than(gap, was);
  const bool takes_more = was != How::kKept && now == How::kKept;
  std::size_t other = gap;
  for (int i = 0; i < kTries && other == gap; ++i) {
    const std::size_t each = pick();
    const bool may = (current_[each] == How::kKept) == takes_more;
    if (each != gap && may && overlap(model_.gaps[gap], model_.gaps[each])) other = each;
  }
  set(gap, now);
  if (other != gap) set(other, answer_to(other, was, now));
}

How LocalSearch::answer_to(std::size_t other, How was, How now) {
  if (was == How::kKept) return random_.chance(0.7) ? How::kKept : other_than(other, current_[other]);
  if (now == How::kKept) return model_.can_drop(other) && random_.chance(0.5) ? How::kDropped : How::kCopied;
  return other_than(other, current_[other]);
}

/// Keeps a part of the intervals around an op, or of all intervals, and chooses again.
void LocalSearch::ruin() {
  Treatments treatments = current_;
  const bool around_op = random_.chance(0.5);
  const auto ops = static_cast<std::uint32_t>(model_.ops());
  const auto op = static_cast<std::uint32_t>(random_.below(ops));
  const double chance = around_op ? 1 - 0.7 * random_.share() : 0.3 * random_.share();
  for (std::size_t i = 0; i < treatments.size(); ++i) {
    if (treatments[i] == How::kKept) continue;
    const Gap& gap = model_.gaps[i];
    const bool spans = (gap.release < op && op < gap.due) || (gap.release < op + ops && op + ops < gap.due);
    if ((!around_op || spans) && random_.chance(chance)) treatments[i] = How::kKept;
  }
  recreate_(treatments, random_);
  for (std::size_t i = 0; i < treatments.size(); ++i)
    if (treatments[i] != current_[i]) set(i, treatments[i]);
}

}  // namespace tidepool
