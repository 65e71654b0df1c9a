// A search over plans of a step with repeated layers, in which each decision holds for a class of gaps.
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
#include "policies/planning/search/mixed_plan.hpp"
#include "simulator/result.hpp"

namespace tidepool {

/// Searches plans in which each class is split by its gaps' length: the longest are copied, the next ones dropped, the
/// shortest kept. For a stack of equal layers, gaps are nested, and an exchange argument shows that some best plan of
/// fluid copies has this form: swap prefix, recompute middle, keep suffix.
///
/// A plan is made in four steps. First it copies the gaps with the best scores until a budget of bytes is spent; the
/// classes that are cheapest to recompute per byte are left out. Then it drops the cheapest classes, each up to its own
/// number of gaps, while the load is above the limits. If that is not enough, it copies further gaps. If that is not
/// enough either, it drops gaps beyond these numbers. Afterwards the bytes of the plan's copies under way are
/// subtracted from the limits, and the plan is made again.
///
/// The search tries budgets and numbers of cheap classes on a grid first. Then it changes one setting of the best plan
/// after the other, as long as that helps: slack, budget, cheap classes, score, issue times of copies, and for each
/// class alone: not dropped, copied less, copied first. If no single change helps, it makes a few at once, at random
/// from a fixed seed, and goes on from there if that helps. So the number of judged plans does not depend on the number
/// of layers. Each plan takes O(slots + gaps log slots) and its judgement. Hopeless plans are recognised during
/// selection.
class TiedSearch {
 public:
  /// Runs a plan in its own run.
  using Judge = std::function<Result(const GapPlan&)>;
  /// Whether a plan with these drops can hardly be better than the best so far.
  using Hopeless = std::function<bool(const std::vector<std::uint32_t>& dropped)>;

  /// @param costs     from Reruns::costs(); Reruns::kImpossible for gaps that may not be dropped
  /// @param hopeless  plans for which it returns true are not run
  /// @param tries     the most plans to judge, besides the empty plan, which comes first
  TiedSearch(const StepCircle& circle, const std::vector<Gap>& gaps, std::vector<GapClass> classes,
             std::vector<Nanos> costs, const Machine& machine, Bytes capacity, Judge judge, Hopeless hopeless,
             std::int64_t tries);

  void run();

  const GapPlan& best() const { return best_; }
  const Result& best_result() const { return best_result_; }
  std::int64_t judged() const { return judged_; }

 private:
  /// The parameters of a plan.
  struct Rule {
    std::size_t cheap = 0;  ///< classes of by_cost_ that are not copied while the budget lasts
    Bytes budget;
    GapScore score = GapScore::kAoa;  ///< order of copied gaps
    CopyOut copies = CopyOut::kAtRelease;
    bool drops_on_demand = false;
    Bytes slack;                                                   ///< capacity minus limits
    std::vector<std::size_t> most_copied = {}, most_dropped = {};  ///< by class
    std::vector<bool> first = {};                                  ///< by class: copied before others
  };

  struct Selected {
    GapPlan plan;                         ///< the copies are not scheduled
    bool fits = false, hopeless = false;  ///< hopeless: the plan may be incomplete
  };

  struct Shares {
    std::vector<std::size_t> copied, dropped;  ///< by class: gaps
  };

  struct Judgement {
    Result result;
    bool is_best = false;  ///< the best so far
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
  std::vector<std::size_t> place_;                           // by gap: position in its class
  std::vector<Nanos> costs_;                                 // by gap
  std::vector<std::uint32_t> by_cost_;                       // classes that can be dropped, the cheapest per byte first
  std::map<GapScore, std::vector<std::uint32_t>> by_score_;  // gaps, the best first
  std::vector<std::size_t> rank_;                            // by class: position in by_cost_, or its size if not in it
  const Machine& machine_;
  Bytes capacity_;
  Judge judge_;
  Hopeless hopeless_;
  std::int64_t tries_, judged_ = 0;
  GapPlan best_;
  Result best_result_;
  Rule best_rule_;
  std::unordered_set<std::uint64_t> seen_;  // hashes of selections and of judged plans
  std::mt19937_64 random_;
};

/// Decides for all similar layers of a step at once, by a TiedSearch of at most `tries` trials.
void try_tied(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, std::int64_t tries);

}  // namespace tidepool
