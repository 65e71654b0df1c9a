// Planning a step of repeated layers: what is decided is decided for a class of gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <unordered_set>
#include <vector>

#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/gap_classes.hpp"
#include "simulator/result.hpp"

namespace tidepool {

/// Searches plans in which each class is split by its gaps' length: the longest copied, those behind them dropped, the
/// shortest kept (swap prefix, recompute middle, keep suffix; for a stack of like layers, where gaps are nested, a best
/// plan of fluid copies has this form by exchange).
///
/// A plan copies what scores best until a budget of bytes is spent, leaving out the classes that are cheapest to make
/// again per byte; drops the cheapest classes next, as far as the load is above the limits; and copies the rest if that
/// is not enough. What its copies hold while they are under way is taken off the limits that it is made again for.
/// Budget and number of cheap classes are tried on a grid first. Then the best is changed in one respect after the
/// other, as long as that helps: slack, budget, cheap classes, score, when copies are issued, and every class by
/// itself: not dropped, copied less, copied first. Where none of that helps, a few such changes are made at once, at
/// random but always the same, and when that helps it goes on from there. So as many plans are judged whatever the
/// number of layers, and one takes O(slots + gaps log slots) and its judgement. What is hopeless is found out while it
/// is selected.
class TiedSearch {
 public:
  /// Runs a plan in the setting that it is for.
  using Judge = std::function<Result(const GapPlan&)>;
  /// Whether a plan that drops this can hardly be better than the best so far.
  using Hopeless = std::function<bool(const std::vector<std::uint32_t>& dropped)>;

  /// @param costs     of Reruns::costs(); Reruns::kImpossible for what may not be dropped
  /// @param hopeless  what it says of is judged by that alone
  /// @param tries     plans to judge at most, of which the first does nothing
  TiedSearch(const StepCircle& circle, const std::vector<Gap>& gaps, std::vector<GapClass> classes,
             std::vector<Nanos> costs, const Machine& machine, Bytes capacity, Judge judge, Hopeless hopeless,
             std::int64_t tries);

  void run();

  const GapPlan& best() const { return best_; }
  const Result& best_result() const { return best_result_; }
  std::int64_t judged() const { return judged_; }

 private:
  /// What a plan is made by.
  struct Rule {
    std::size_t cheap = 0;  ///< classes of by_cost_ that are not copied as long as the budget lasts
    Bytes budget;
    GapScore score = GapScore::kAoa;  ///< by which is copied
    CopyOut copies = CopyOut::kAtRelease;
    bool drops_on_demand = false;
    Bytes slack;                                                   ///< what the limits are below the capacity
    std::vector<std::size_t> most_copied = {}, most_dropped = {};  ///< by class
    std::vector<bool> first = {};                                  ///< by class: copied before others
  };

  struct Selected {
    GapPlan plan;                         ///< copies not scheduled
    bool fits = false, hopeless = false;  ///< then it may be only a part
  };

  struct Shares {
    std::vector<std::size_t> copied, dropped;  ///< by class: gaps
  };

  struct Judgement {
    Result result;
    bool is_best = false;  ///< so far
  };

  bool over() const;
  bool is_new(const GapPlan& selected, CopyOut copies);
  std::optional<Judgement> try_plan(GapPlan plan, const Rule& rule);
  bool attempt(const Rule& rule);
  template <class Set>
  bool change(Set set);
  Selected select(const Rule& rule, const SlotLimits& limits);
  std::vector<std::uint32_t> order_of(const Rule& rule);
  StepCircle without(const std::vector<std::uint32_t>& dropped) const;
  Bytes of_the_link(std::int64_t sixteenths) const;
  void try_grid();
  bool try_settings();
  bool try_classes();
  Shares shares_of_best() const;
  void change_at_random(Rule& rule, const Shares& best);
  bool try_mixtures();

  const StepCircle& circle_;
  const std::vector<Gap>& gaps_;
  std::vector<GapClass> classes_;
  std::vector<std::uint32_t> class_of_;                      // by gap
  std::vector<std::size_t> place_;                           // by gap: in its class
  std::vector<Nanos> costs_;                                 // by gap
  std::vector<std::uint32_t> by_cost_;                       // classes that can be dropped, the cheapest per byte first
  std::map<GapScore, std::vector<std::uint32_t>> by_score_;  // gaps, the best first
  std::vector<std::size_t> rank_;                            // by class: in by_cost_; beyond it if it cannot be dropped
  const Machine& machine_;
  Bytes capacity_;
  Judge judge_;
  Hopeless hopeless_;
  std::int64_t tries_, judged_ = 0;
  GapPlan best_;
  Result best_result_;
  Rule best_rule_;
  std::unordered_set<std::uint64_t> seen_;  // hashes of what was selected, and of the plans judged
  std::mt19937_64 random_;
};

}  // namespace tidepool
