// The contract of one tiny step, for tests that try thousands of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/oracle/optimum.hpp"
#include "tests/oracle/steady.hpp"
#include "tests/quick_spec.hpp"
#include "tests/tiny_case.hpp"
#include "traces/base/error.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::tests {

/// The actions that plans of a run may use.
struct TinyClass {
  bool swap = false, remat = false;
  bool operator==(const TinyClass&) const = default;
};

inline TinyClass class_of(PolicyKind kind) {
  return {kind == PolicyKind::kSwap || kind == PolicyKind::kHybrid,
          kind == PolicyKind::kRemat || kind == PolicyKind::kHybrid};
}

/// Whether a realised plan uses only the actions of a class.
inline bool within(const Trace& trace, const Plan& plan, TinyClass may) {
  std::vector<bool> ran(trace.ops().size()), alloced(trace.versions().size());
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kAlloc) alloced[action.subject] = true;
    if (!may.swap && (action.verb == Verb::kSwapOut || action.verb == Verb::kSwapIn)) return false;
    if (action.verb != Verb::kRun) continue;
    if (!may.remat && ran[action.subject]) return false;
    ran[action.subject] = true;
  }
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (!may.swap && trace.buffers()[i].born_before && !alloced[trace.first_version(BufferId{i}).index()]) return false;
  return true;
}

/// Whether the plan has places, from the run's pool or from one that a policy brought.
inline bool has_addresses(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return (action.verb == Verb::kAlloc || action.verb == Verb::kSwapIn) && action.offset != kNoAddress;
  });
}

struct TinyFinding {
  std::string what;  ///< kind of the fault, such as "bound above the optimum"
  std::string text;
};

/// One tiny step in one class, with the faults found in it.
class TinyContract {
 public:
  /// Finds the optimum by counted bytes, and checks its plan. Keeps a reference to the recipe.
  /// @param most_states  limit of this search, see OptimumQuery
  TinyContract(const TinyRecipe& recipe, TinyClass plans, std::int64_t most_states)
      : recipe_{recipe}, trace_{recipe.trace()}, class_{plans} {
    OptimumQuery query{trace_, recipe_.machine, recipe_.capacity(), plans.swap, plans.remat, false, most_states};
    by_bytes_ = solve(query, &at_least_);
    if (by_bytes_ && by_bytes_->feasible) check_plan(*by_bytes_, query);
  }

  /// Whether the least time has been found. If it has not, the search may have proved a bound.
  bool solved() const { return by_bytes_.has_value(); }
  /// By counted bytes; feasible or not. Call only if solved().
  const Optimum& optimum() const { return *by_bytes_; }
  const Trace& trace() const { return trace_; }
  Nanos baseline() const { return baseline_time(trace_, recipe_.machine.launch); }
  const std::vector<TinyFinding>& findings() const { return findings_; }

  /// Finds the optimum with places, too. Later runs on pools with addresses are compared with it. Call only if
  /// solved().
  void place(std::int64_t most_states) {
    OptimumQuery query{trace_, recipe_.machine, recipe_.capacity(), class_.swap, class_.remat, true, most_states};
    placed_ = solve(query);
    if (!placed_ || !placed_->feasible) return;
    check_plan(*placed_, query);
    if (trace_.data().streams.size() == 1 && !class_.swap && placed_->makespan < by_bytes_->makespan)
      find("an optimum in places below that by bytes",
           fmt::format("{} < {} ns", placed_->makespan.count(), by_bytes_->makespan.count()));
  }

  /// Checks that no bound is above the optimum. Call only if solved().
  void check_bounds() {
    for (const Bound& bound : compute_bounds(bound_query(false), BoundEffort::kAll)) {
      if (!by_bytes_->feasible || (bound.feasible && bound.makespan <= by_bytes_->makespan)) continue;
      find("a bound above the optimum",
           fmt::format("{}; the optimum is {} ns", says(bound), by_bytes_->makespan.count()));
    }
  }

  /// Checks the best cycle of the repeated step, and its bounds if there is a cycle.
  /// @return the cycle, not `feasible` if it is proved that there is none; nothing if the search gave up
  std::optional<SteadyOptimum> check_steady(std::int64_t most_states) {
    SteadyOptimum found;
    try {
      found = find_steady_optimum(
          {trace_, recipe_.machine, recipe_.capacity(), class_.swap, class_.remat, false, most_states});
    } catch (const InputError&) {
      return std::nullopt;
    }
    if (found.feasible && !found.plan.actions.empty()) check_cycle(found);
    if (!found.exact) return std::nullopt;
    if (found.feasible)
      for (const Bound& bound : compute_bounds(bound_query(true), BoundEffort::kAll))
        if (!bound.feasible || bound.makespan * found.iterations > found.cycle)
          find("a steady bound above the optimum",
               fmt::format("{}; {} iterations take {} ns", says(bound), found.iterations, found.cycle.count()));
    return found;
  }

  /// The query of the step's bounds, or of those of its repeated form. It refers to this object and to the recipe.
  BoundQuery bound_query(bool steady) const {
    return {.trace = trace_,
            .machine = recipe_.machine,
            .capacity = recipe_.capacity(),
            .swap = class_.swap,
            .remat = class_.remat,
            .steady = steady};
  }

  /// Runs a policy. Checks that its plan can be executed and costs what the run says. If the plan uses only actions of
  /// this object's class, also that it does not beat the optimum or, if that is unknown, the bound of the search.
  /// @return the result; kError if the policy threw PlanError
  Result check_policy(const std::string& pool, const std::string& policy) {
    const RunSpec spec{.pool = pool, .policy = policy, .capacity = recipe_.capacity(), .machine = recipe_.machine};
    Result result;
    try {
      result = simulate(trace_, spec, true);
    } catch (const PlanError& error) {
      result.outcome = Outcome::kError;
      result.message = error.what();
    }
    const std::string run = policy + " on " + pool;
    if (result.outcome == Outcome::kError) find("an error", run + ": " + result.message);
    if (result.outcome != Outcome::kOk) return result;
    try {
      if (replay(trace_, spec, result.realised) != result.totals) find("a plan that costs something else", run);
      const HostReport report = execute_on_host(trace_, result.realised, {.threads = false, .arena = 1_MiB});
      if (report.outcome != HostOutcome::kOk) find("a plan that reads wrong bytes", run + ": " + report.message);
    } catch (const PlanError& error) {
      find("a plan that cannot be executed", run + ": " + error.what());
    }
    if (!within(trace_, result.realised, class_)) return result;
    const bool addresses = has_addresses(result.realised), in_places = addresses && placed_;
    if (!addresses && result.totals.makespan < at_least_)
      find("a result below a bound of the search",
           fmt::format("{}: {} < {} ns", run, result.totals.makespan.count(), at_least_.count()));
    if (!solved()) return result;
    // By counted bytes, a buffer may have to wait for any bytes that a copy or another stream frees; on addresses, only
    // for those of its own place. So a run on addresses may be faster than the optimum by bytes.
    if (addresses && !placed_ && (class_.swap || trace_.data().streams.size() > 1)) return result;
    const Optimum& best = in_places ? *placed_ : *by_bytes_;
    if (!best.feasible)
      find("a result where no plan exists", fmt::format("{}: {} ns", run, result.totals.makespan.count()));
    else if (result.totals.makespan < best.makespan)
      find("a result below the optimum",
           fmt::format("{}: {} < {} ns", run, result.totals.makespan.count(), best.makespan.count()));
    return result;
  }

 private:
  void find(const std::string& what, const std::string& text) { findings_.push_back({what, text}); }

  static std::string says(const Bound& bound) {
    return bound.name +
           (bound.feasible ? fmt::format(" says {} ns", bound.makespan.count()) : " says that no plan exists");
  }

  /// Checks that the last cycle of a plan takes the reported time.
  void check_cycle(const SteadyOptimum& found) {
    const RunSpec spec{.pool = "ideal", .capacity = recipe_.capacity(), .machine = recipe_.machine, .iterations = 2};
    try {
      replay(trace_, spec, found.plan);
      const std::vector<Nanos> ends = iteration_ends(trace_, recipe_.machine, recipe_.capacity(), found.plan);
      const Nanos cycle = ends.back() - ends[ends.size() - 1 - static_cast<std::size_t>(found.iterations)];
      if (cycle != found.cycle)
        find("a steady optimum that costs something else",
             fmt::format("{} instead of {} ns", cycle.count(), found.cycle.count()));
      const HostReport report = execute_on_host(trace_, found.plan, {.threads = false, .arena = 1_MiB});
      if (report.outcome != HostOutcome::kOk) find("a steady optimum that reads wrong bytes", report.message);
    } catch (const PlanError& error) {
      find("a steady optimum that cannot be executed", error.what());
    }
  }

  /// The optimum; none if the step is too large, or the search does not support the machine.
  /// @param at_least  receives the time that no plan beats, if the search gives up
  static std::optional<Optimum> solve(const OptimumQuery& query, Nanos* at_least = nullptr) {
    try {
      Optimum found = find_optimum(query);
      if (found.exact) return found;
      if (at_least != nullptr) *at_least = found.makespan;
    } catch (const InputError&) {
    }
    return std::nullopt;
  }

  /// Checks that an optimum's own plan is valid and takes the reported time.
  void check_plan(const Optimum& found, const OptimumQuery& query) {
    const RunSpec spec{
        .pool = query.addresses ? "best-fit" : "ideal", .capacity = query.capacity, .machine = query.machine};
    try {
      const Totals totals = replay(trace_, spec, found.plan);
      if (totals.makespan != found.makespan)
        find("an optimum that costs something else", fmt::format("{} ns", totals.makespan.count()));
      const HostReport report = execute_on_host(trace_, found.plan, {.threads = false, .arena = 1_MiB});
      if (report.outcome != HostOutcome::kOk) find("an optimum that reads wrong bytes", report.message);
      if (!within(trace_, found.plan, class_)) find("an optimum outside of its class", "");
    } catch (const PlanError& error) {
      find("an optimum that cannot be executed", error.what());
    }
  }

  const TinyRecipe& recipe_;
  const Trace trace_;
  const TinyClass class_;
  std::optional<Optimum> by_bytes_, placed_;
  Nanos at_least_;  ///< a time that no plan beats, if by_bytes_ is not known; otherwise 0
  std::vector<TinyFinding> findings_;
};

/// What check_tiny_step() found. `exceeds`: the optimum takes longer than the step without a limit. `results`: the
/// number of policies of the class whose runs ended well.
struct TinyCheck {
  bool solved = false, feasible = false, exceeds = false;
  int results = 0;
  std::vector<TinyFinding> findings = {};
};

/// All checks of one step, with the policies of one class: tide in one of eight turns, the others in each. Successive
/// turns take the classes in turn. The pool, and whether places and cycles are searched, are drawn at random by `turn`,
/// so that over many turns all policies meet all kinds of steps on all pools.
inline TinyCheck check_tiny_step(const TinyRecipe& recipe, std::uint64_t turn) {
  static constexpr TinyClass kClasses[] = {{true, false}, {false, true}, {true, true}};
  const TinyClass plans = kClasses[turn % 3];
  TinyContract contract{recipe, plans, 40'000};
  Random random{~turn};  // not that of the recipe
  const std::size_t draw = random.below(4);
  const std::string pool = draw < 2 ? "ideal" : draw == 2 ? "best-fit" : "first-fit";
  TinyCheck check;
  check.solved = contract.solved();
  if (check.solved) {
    check.feasible = contract.optimum().feasible;
    check.exceeds = check.feasible && contract.optimum().makespan > contract.baseline();
    contract.check_bounds();
    if (random.below(3) == 0) contract.check_steady(20'000);
  }
  if (check.solved && pool != "ideal" && random.chance(50)) contract.place(20'000);
  const bool dear = random.below(8) == 0;
  for (const PolicyInfo* policy : all_policies()) {
    if (class_of(policy->kind) != plans) continue;
    if (policy->name == "tide" && !dear) continue;
    check.results += contract.check_policy(pool, quick_spec(*policy)).outcome == Outcome::kOk;
  }
  if (plans == TinyClass{true, false} && random.below(4) == 0) contract.check_policy(pool, "tide(with=swap, effort=1)");
  check.findings = contract.findings();
  return check;
}

}  // namespace tidepool::tests
