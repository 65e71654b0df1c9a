#include "policies/planning/search/tied_search.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/planning/gaps/excess_tree.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/search/gap_changes.hpp"
#include "policies/planning/search/reruns.hpp"

namespace tidepool {
namespace {

/// FNV-1a hash of the actions of a plan.
std::uint64_t hash_of(const GapPlan& plan, std::uint64_t more = 0) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const PlannedGap& each : plan.copied) add(each.gap), add(each.issue), add(each.copy);
  add(~std::uint64_t{0} - (plan.drops_on_demand ? 1 : 0));
  for (const std::uint32_t i : plan.dropped) add(i);
  add(more);
  return hash;
}

}  // namespace

TiedSearch::TiedSearch(const StepCircle& circle, const std::vector<Gap>& gaps, std::vector<GapClass> classes,
                       std::vector<Nanos> costs, const Machine& machine, Bytes capacity, Judge judge, Hopeless hopeless,
                       std::int64_t tries)
    : circle_{circle},
      gaps_{gaps},
      classes_{std::move(classes)},
      class_of_(gaps.size()),
      place_(gaps.size()),
      costs_{std::move(costs)},
      machine_{machine},
      capacity_{capacity},
      judge_{std::move(judge)},
      hopeless_{std::move(hopeless)},
      tries_{tries},
      best_result_{judge_({})} {
  const auto per_byte = [&](std::uint32_t one) {
    const std::uint32_t gap = classes_[one].members.front();
    return static_cast<double>(costs_[gap].count()) / static_cast<double>(gaps_[gap].size.count());
  };
  for (std::uint32_t c = 0; c < classes_.size(); ++c) {
    const std::vector<std::uint32_t>& members = classes_[c].members;
    for (std::size_t i = 0; i < members.size(); ++i) class_of_[members[i]] = c, place_[members[i]] = i;
    if (costs_[members.front()] != Reruns::kImpossible) by_cost_.push_back(c);
    best_rule_.most_copied.push_back(members.size());
  }
  std::stable_sort(by_cost_.begin(), by_cost_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return per_byte(a) < per_byte(b); });
  best_rule_.most_dropped = best_rule_.most_copied;
  best_rule_.first.assign(classes_.size(), false);
  rank_.assign(classes_.size(), by_cost_.size());
  for (std::size_t i = 0; i < by_cost_.size(); ++i) rank_[by_cost_[i]] = i;
}

bool TiedSearch::over() const {
  return judged_ >= tries_ ||
         (best_result_.outcome == Outcome::kOk && best_result_.totals.makespan <= best_result_.baseline);
}

void TiedSearch::run() {
  if (gaps_.empty() || over()) return;
  if (!by_cost_.empty()) try_plan({.copied = {}, .dropped = {}, .drops_on_demand = true}, best_rule_);
  try_grid();
  do {
    for (bool improved = true; improved && !over();) {
      improved = try_settings();
      improved |= try_classes();
    }
  } while (try_mixtures());
}

/// The step with the load that remains if these gaps are dropped, and with the time of their reruns.
StepCircle TiedSearch::without(const std::vector<std::uint32_t>& dropped) const {
  StepCircle circle = circle_;
  circle.load = load_without(circle_, gaps_, dropped);
  std::vector<Nanos> again(circle.size() + 1);
  for (const std::uint32_t i : dropped) again[gaps_[i].due] += costs_[i];
  Nanos later;
  for (std::size_t k = 0; k <= circle.size(); ++k) circle.start[k] += later += again[k];
  return circle;
}

/// All gaps: those of classes that are copied first, then the others by descending score.
std::vector<std::uint32_t> TiedSearch::order_of(const Rule& rule) {
  std::vector<std::uint32_t>& by_score = by_score_[rule.score];
  if (by_score.empty()) {
    // The scores that are tried do not depend on limits.
    const std::vector<double> scores =
        gap_scores(circle_, gaps_, machine_, rule.score, SlotLimits(circle_.size(), capacity_));
    by_score.resize(gaps_.size());
    std::iota(by_score.begin(), by_score.end(), 0u);
    std::stable_sort(by_score.begin(), by_score.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  }
  std::vector<std::uint32_t> order = by_score;
  std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) { return rule.first[class_of_[i]]; });
  return order;
}

/// The selection of a rule; incomplete if it is hopeless.
TiedSearch::Selected TiedSearch::select(const Rule& rule, const SlotLimits& limits) {
  std::vector<How> how(gaps_.size());
  ExcessTree tree{circle_, limits};
  const std::vector<std::uint32_t> order = order_of(rule);
  const auto take = [&](std::uint32_t i, How as) {
    if (how[i] != How::kKept || !tree.relieves(gaps_[i])) return false;
    tree.take(gaps_[i]);
    how[i] = as;
    return true;
  };
  const auto copy = [&](Bytes budget, std::size_t cheap) {
    for (const std::uint32_t i : order) {
      if (tree.fits() || budget <= Bytes{}) return;
      if (rank_[class_of_[i]] < cheap || place_[i] >= rule.most_copied[class_of_[i]]) continue;
      if (take(i, How::kCopied)) budget -= gaps_[i].size;
    }
  };
  std::vector<std::uint32_t> dropped;
  Selected selected;
  std::size_t asked = 0;  // number of drops when hopeless() was last called
  const auto ask = [&](std::size_t more) {
    if (dropped.size() > asked + more) selected.hopeless = hopeless_(dropped), asked = dropped.size();
    return selected.hopeless;
  };
  const auto drop = [&](bool unlimited) {
    for (const std::uint32_t c : by_cost_) {
      if (ask(asked / 4)) return;
      std::size_t left = unlimited ? classes_[c].members.size() : rule.most_dropped[c];
      for (const std::uint32_t i : classes_[c].members) {
        if (tree.fits()) return;
        if (left == 0) break;
        if (costs_[i] == Reruns::kImpossible || !take(i, How::kDropped)) continue;
        dropped.push_back(i);
        --left;
      }
    }
  };
  copy(rule.budget, rule.cheap);
  drop(false);
  if (!ask(0)) copy(kNoLimit, 0);
  if (!ask(0)) drop(true);
  ask(0);
  selected.fits = tree.fits();
  selected.plan.drops_on_demand = rule.drops_on_demand;
  for (std::uint32_t i = 0; i < gaps_.size(); ++i) {
    if (how[i] == How::kCopied) selected.plan.copied.push_back({i, gaps_[i].due});
    if (how[i] == How::kDropped) selected.plan.dropped.push_back(i);
  }
  return selected;
}

/// Whether no earlier rule gave this selection.
bool TiedSearch::is_new(const GapPlan& selected, CopyOut copies) {
  return seen_.insert(hash_of(selected, selected.copied.empty() || copies == CopyOut::kAtRelease ? 1 : 2)).second;
}

/// Judges a plan; none if it was judged before.
std::optional<TiedSearch::Judgement> TiedSearch::try_plan(GapPlan plan, const Rule& rule) {
  if (!seen_.insert(hash_of(plan)).second) return std::nullopt;
  Judgement judgement{judge_(plan), false};
  ++judged_;
  judgement.is_best = better(judgement.result, best_result_);
  if (judgement.is_best) best_result_ = judgement.result, best_ = std::move(plan), best_rule_ = rule;
  return judgement;
}

/// Makes and judges the plan of a rule. Makes it again with the limits reduced by its copies under way, as long as that
/// may help. @return  whether one of these plans is the best so far
bool TiedSearch::attempt(const Rule& rule) {
  constexpr int kRounds = 3;
  bool improved = false;
  std::optional<Result> before;
  SlotLimits limits(circle_.size(), capacity_ - rule.slack);
  for (int round = 0; round < kRounds && !over(); ++round) {
    auto [plan, fits, hopeless] = select(rule, limits);
    if (!is_new(plan, rule.copies)) break;
    if (hopeless) {
      ++judged_;
      break;
    }
    const StepCircle circle = without(plan.dropped);
    std::vector<std::uint32_t> selected;
    for (const PlannedGap& each : plan.copied) selected.push_back(each.gap);
    plan.copied =
        schedule_late(circle, gaps_, selected, machine_, std::max(capacity_, peak_without(circle, gaps_, selected)));
    if (rule.copies == CopyOut::kWhenFree) copy_when_free(circle, gaps_, plan.copied, machine_);
    const std::optional<Judgement> judgement = try_plan(std::move(plan), rule);
    if (!judgement) break;
    const Result& result = judgement->result;
    improved |= judgement->is_best;
    const bool is_close = result.outcome == Outcome::kOk
                              ? result.totals.makespan / 10 * 9 <= best_result_.totals.makespan
                              : best_result_.outcome != Outcome::kOk;
    if (!fits || selected.empty() || !is_close || (before && !better(result, *before))) break;
    before = result;
    const std::vector<Bytes> under_way = bytes_under_way(circle, gaps_, selected, machine_, rule.copies);
    SlotLimits next(circle_.size());
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = capacity_ - rule.slack - under_way[k];
    if (next == limits) break;
    limits = std::move(next);
  }
  return improved;
}

/// Tries the best rule so far with one change.
template <class Set>
bool TiedSearch::change(Set set) {
  Rule rule = best_rule_;
  set(rule);
  return !over() && attempt(rule);
}

/// The bytes that the link can swap in during `sixteenths` sixteenths of a step.
Bytes TiedSearch::of_the_link(std::int64_t sixteenths) const {
  const double most =
      static_cast<double>(circle_.period().count()) / 1e9 * static_cast<double>(machine_.h2d.rate.count());
  return Bytes{static_cast<std::int64_t>(most) / 16 * sixteenths};
}

void TiedSearch::try_grid() {
  const Rule plain = best_rule_;
  for (const int sixteenths : {0, 2, 4, 8, 16, 1, 3, 6, 12, 32})
    for (const std::size_t thirds : {0u, 1u, 2u})
      for (const int slack : {0, 4})
        for (const bool drops_on_demand : {true, false}) {
          if (over()) return;
          if (drops_on_demand && by_cost_.empty()) continue;
          Rule rule = plain;
          rule.budget = of_the_link(sixteenths);
          rule.cheap = by_cost_.size() * thirds / 3;
          rule.slack = capacity_ * slack / 100;
          rule.drops_on_demand = drops_on_demand;
          attempt(rule);
        }
}

bool TiedSearch::try_settings() {
  bool improved = false;
  for (const int percent : {0, 1, 2, 4, 8, 12, 20, 30})
    improved |= change([&](Rule& rule) { rule.slack = capacity_ * percent / 100; });
  improved |= change(
      [](Rule& rule) { rule.copies = rule.copies == CopyOut::kAtRelease ? CopyOut::kWhenFree : CopyOut::kAtRelease; });
  for (const GapScore score : {GapScore::kAoa, GapScore::kDoa, GapScore::kWdoa})
    improved |= change([&](Rule& rule) { rule.score = score; });
  for (std::int64_t part = 2; part <= 64; part *= 2) {
    improved |= change([&](Rule& rule) { rule.budget += rule.budget / part; });
    improved |= change([&](Rule& rule) { rule.budget -= rule.budget / part; });
  }
  for (std::size_t step = by_cost_.size() / 4; step > 0; step /= 2) {
    improved |= change([&](Rule& rule) { rule.cheap = std::min(rule.cheap + step, by_cost_.size()); });
    improved |= change([&](Rule& rule) { rule.cheap -= std::min(rule.cheap, step); });
  }
  return improved;
}

bool TiedSearch::try_classes() {
  bool improved = false;
  std::vector<std::uint32_t> order(classes_.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto bytes = [&](std::uint32_t c) {
    return gaps_[classes_[c].members.front()].size * static_cast<std::int64_t>(classes_[c].members.size());
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return bytes(a) > bytes(b); });
  for (const std::uint32_t c : order) {
    if (over()) break;
    const Shares best = shares_of_best();
    const std::size_t copied = best.copied[c], dropped = best.dropped[c];
    const std::size_t all = classes_[c].members.size();
    if (best_rule_.most_dropped[c] < all) improved |= change([&](Rule& rule) { rule.most_dropped[c] = all; });
    if (best_rule_.most_copied[c] < all) improved |= change([&](Rule& rule) { rule.most_copied[c] = all; });
    for (const std::size_t quarters : {0u, 2u, 3u}) {
      if (dropped > 0) improved |= change([&](Rule& rule) { rule.most_dropped[c] = dropped * quarters / 4; });
      if (copied > 0) improved |= change([&](Rule& rule) { rule.most_copied[c] = copied * quarters / 4; });
    }
    if (copied < all && !best_rule_.first[c])
      improved |= change([&](Rule& rule) { rule.first[c] = true, rule.most_copied[c] = all; });
  }
  return improved;
}

/// By class: the number of gaps that the best plan copies and drops.
TiedSearch::Shares TiedSearch::shares_of_best() const {
  Shares shares{std::vector<std::size_t>(classes_.size()), std::vector<std::size_t>(classes_.size())};
  for (const PlannedGap& each : best_.copied) ++shares.copied[class_of_[each.gap]];
  for (const std::uint32_t i : best_.dropped) ++shares.dropped[class_of_[i]];
  return shares;
}

/// Changes one parameter at random. A changed class is mostly one that the change affects in the best plan.
void TiedSearch::change_at_random(Rule& rule, const Shares& best) {
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random_() % end); };
  const auto limit_a_class = [&](std::vector<std::size_t>& most, const std::vector<std::size_t>& share) {
    std::vector<std::uint32_t> some;
    for (std::uint32_t c = 0; c < classes_.size(); ++c)
      if (share[c] > 0 || most[c] < classes_[c].members.size()) some.push_back(c);
    if (some.empty()) return;
    const std::uint32_t c = some[below(some.size())];
    most[c] = share[c] > 0 ? below(share[c]) : classes_[c].members.size();
  };
  const auto any = static_cast<std::uint32_t>(below(classes_.size()));
  switch (below(8)) {
    case 0:
      rule.slack = capacity_ * static_cast<std::int64_t>(below(31)) / 100;
      break;
    case 1:
      rule.copies = rule.copies == CopyOut::kAtRelease ? CopyOut::kWhenFree : CopyOut::kAtRelease;
      rule.score = std::array{GapScore::kAoa, GapScore::kDoa, GapScore::kWdoa}[below(3)];
      break;
    case 2:
      rule.budget = of_the_link(static_cast<std::int64_t>(below(33)));
      break;
    case 3:
      rule.cheap = below(by_cost_.size() + 1);
      break;
    case 4:
      rule.first[any].flip();
      break;
    case 5:
      limit_a_class(rule.most_copied, best.copied);
      break;
    case 6:
      rule.most_dropped[any] = below(classes_[any].members.size() + 1);
      break;
    default:
      limit_a_class(rule.most_dropped, best.dropped);
  }
}

/// Tries the best rule with a few random changes at once, until that helps. @return  whether it did
bool TiedSearch::try_mixtures() {
  constexpr int kMostInVain = 300;  // consecutive plans that were judged before
  const Shares best = shares_of_best();
  for (int in_vain = 0; in_vain < kMostInVain && !over(); ++in_vain) {
    const std::int64_t before = judged_;
    Rule rule = best_rule_;
    for (std::uint64_t left = 2 + random_() % 3; left > 0; --left) change_at_random(rule, best);
    if (attempt(rule)) return true;
    if (judged_ > before) in_vain = 0;
  }
  return false;
}

void try_tied(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, std::int64_t tries) {
  TiedSearch search{planning.circle,
                    planning.gaps,
                    gap_classes(find_structure(planning.trace), planning.circle, planning.gaps),
                    costs,
                    planning.machine,
                    planning.capacity,
                    [&](const GapPlan& plan) { return trials.add(planning.gaps, plan); },
                    [&](const std::vector<std::uint32_t>& dropped) { return trials.must_lose(planning.gaps, dropped); },
                    tries};
  search.run();
}

}  // namespace tidepool
