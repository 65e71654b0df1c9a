#include "simulator/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/engine/driver.hpp"
#include "simulator/engine/plan_costs.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/registry.hpp"
#include "traces/error.hpp"

namespace tidepool {

namespace {

/// What existed before the step gets places of no size, which are in nobody's way.
void begin_unhindered(const Trace& trace, Timeline& timeline, bool first) {
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && (first || !buffer.outlives))
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{i}).value(), Bytes{}, Bytes{}});
}

void run_unhindered(const Trace& trace, Timeline& timeline) {
  for (const Step& step : trace.steps())
    if (step.kind == StepKind::kRun)
      timeline.apply({Verb::kRun, OpId{step.id}, step.id, {}, {}});
    else if (step.kind == StepKind::kAlloc)
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{step.id}).value(), Bytes{}, Bytes{}});
}

}  // namespace

Nanos baseline_time(const Trace& trace, Nanos launch) {
  if (trace.data().streams.size() == 1 && launch == Nanos{}) {
    Nanos sum;
    for (const Op& op : trace.ops()) sum += op.duration;
    return sum;
  }
  std::vector<VersionState> states;
  Machine machine;
  machine.launch = launch;
  Timeline timeline{trace, machine, {}, states};
  begin_unhindered(trace, timeline, true);
  run_unhindered(trace, timeline);
  return timeline.totals().makespan;
}

namespace {

struct Chain {
  std::vector<std::unique_ptr<Policy>> policies;
  bool may_swap = false;
};

Chain make_chain(const RunSpec& spec) {
  Chain chain;
  for (const std::string& text : split_list(spec.policy, '+')) {
    const Spec one = parse_spec(text);
    const PolicyInfo& info = find_policy(one.name);
    const Options options{info.name, info.options, one.options, spec.seed};
    if (info.kind == PolicyKind::kNone) continue;
    chain.may_swap |= info.kind == PolicyKind::kSwap || info.kind == PolicyKind::kHybrid;
    chain.policies.push_back(info.make(options));
  }
  if (chain.policies.size() > 8) throw InputError{fmt::format("'{}' names more than 8 policies", spec.policy)};
  return chain;
}

/// Appends `part` behind a separator unless `text` is empty.
void join(std::string& text, char separator, const std::string& part) {
  if (!text.empty()) text += separator;
  text += part;
}

}  // namespace

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kOutOfMemory:
      return "out_of_memory";
    case Outcome::kInfeasible:
      return "infeasible";
    case Outcome::kTimeLimit:
      return "time_limit";
    case Outcome::kError:
      return "error";
  }
  return "error";
}

Outcome find_outcome(std::string_view text) {
  for (const Outcome outcome :
       {Outcome::kOk, Outcome::kOutOfMemory, Outcome::kInfeasible, Outcome::kTimeLimit, Outcome::kError})
    if (to_text(outcome) == text) return outcome;
  throw InputError{fmt::format("no outcome named '{}'", text)};
}

std::vector<Action> Policy::plan_run(const Trace& trace, const RunSpec& spec) {
  return plan(trace, spec.machine, spec.capacity);
}

SpecNames names_of(const RunSpec& spec) {
  SpecNames names;
  const auto add = [&](const auto& info, const Spec& one, std::string& name, char separator) {
    join(name, separator, info.name);
    const std::string given = Options{info.name, info.options, one.options}.text();
    if (!given.empty()) join(names.options, ' ', fmt::format("{}({})", info.name, given));
  };
  const Spec pool = parse_spec(spec.pool);
  add(find_pool(pool.name), pool, names.pool, ' ');
  for (const std::string& text : split_list(spec.policy, '+')) {
    const Spec policy = parse_spec(text);
    add(find_policy(policy.name), policy, names.policy, '+');
  }
  return names;
}

Result simulate(const Trace& trace, const RunSpec& spec, bool keep_plan) {
  Chain chain = make_chain(spec);
  return simulate_under(trace, spec, std::move(chain.policies), chain.may_swap, keep_plan);
}

namespace {

/// The step's time without policy and limit, in the steady state where that is asked for.
Nanos baseline_of(const Trace& trace, const RunSpec& spec) {
  const Nanos launch = spec.machine.launch;
  if (!spec.steady || (trace.data().streams.size() == 1 && launch == Nanos{})) return baseline_time(trace, launch);
  std::vector<VersionState> states;
  Machine machine;
  machine.launch = launch;
  Timeline timeline{trace, machine, {}, states};
  begin_unhindered(trace, timeline, true);
  std::vector<Boundary> boundaries{timeline.boundary()};
  std::vector<Totals> iterations;
  for (std::uint32_t i = 1;; ++i) {
    run_unhindered(trace, timeline);
    iterations.push_back(timeline.totals());
    timeline.apply({Verb::kNext, OpId{}, i, {}, {}});
    begin_unhindered(trace, timeline, false);
    boundaries.push_back(timeline.boundary());
    int cycle = cycle_of(boundaries, iterations);
    if (cycle == 0 && static_cast<int>(i) < spec.iterations) continue;
    if (cycle == 0) cycle = static_cast<int>(i + 1) / 2;
    return mean_of_last(iterations, cycle).makespan;
  }
}

Result drive(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies, bool may_swap,
             bool keep_plan, std::optional<Nanos> matters_to, std::optional<Shortage>& shortage) {
  const Spec pool_spec = parse_spec(spec.pool);
  const PoolInfo& info = find_pool(pool_spec.name);
  const Options pool_options{info.name, info.options, pool_spec.options, spec.seed};
  const std::unique_ptr<Pool> pool = info.make(pool_options);
  Driver driver{trace, spec, baseline_of(trace, spec), *pool, policies, may_swap, keep_plan, matters_to};
  Result result = driver.run();
  shortage = driver.shortage();
  return result;
}

}  // namespace

Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan, std::optional<Nanos> matters_to) {
  std::optional<Shortage> unused;
  return drive(trace, spec, std::move(policies), may_swap, keep_plan, matters_to, unused);
}

std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec) {
  Chain chain = make_chain(spec);
  std::optional<Shortage> shortage;
  drive(trace, spec, std::move(chain.policies), chain.may_swap, false, {}, shortage);
  return shortage;
}

std::vector<Totals> costs_of_iterations(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  Replay replay{trace, spec};
  replay.apply(plan.actions);
  return replay.finish();
}

Totals whole_cost(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  return sum_of(costs_of_iterations(trace, spec, plan));
}

Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const std::vector<Totals> iterations = costs_of_iterations(trace, spec, plan);
  return mean_of_last(iterations, std::clamp(plan.cycle, 1, static_cast<int>(iterations.size())));
}

Bytes ideal_peak(const Trace& trace, const Assumptions& assume) {
  if (!assume.copy_on_write) return trace.ideal_peak();
  std::vector<bool> live(trace.versions().size());
  std::vector<VersionId> current(trace.buffers().size());
  Bytes sum, peak;
  const auto begin = [&](VersionId v) {
    live[v.index()] = true;
    sum += trace.size(v);
    peak = std::max(peak, sum);
    current[trace.version(v).buffer.index()] = v;
  };
  const auto end = [&](VersionId v) {
    if (live[v.index()]) sum -= trace.size(v);
    live[v.index()] = false;
  };
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before) begin(trace.first_version(BufferId{i}));
  for (const Step& step : trace.steps()) switch (step.kind) {
      case StepKind::kAlloc:
        begin(trace.first_version(BufferId{step.id}));
        break;
      case StepKind::kRun:
        for (const Use& use : trace.uses(OpId{step.id}))
          if (use.out.valid() && use.access != Access::kView && !live[use.out.index()] &&
              trace.version(use.out).parent.valid())
            begin(use.out);
        break;
      case StepKind::kForget:
        end(VersionId{step.id});
        break;
      case StepKind::kFree:
        for (VersionId v = current[step.id]; v.valid(); v = trace.version(v).parent) end(v);
        break;
    }
  return peak;
}

std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('x') && !text.ends_with('%')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, number);
  const double share = text.ends_with('%') ? number / 100 : number;
  if (error == std::errc{} && end == text.data() + text.size() - 1 && share > 0 && share < 1e6) return share;
  throw InputError{fmt::format("'{}' is not a share of the peak; expected a number and x or %, as in 0.5x", text)};
}

Bytes parse_capacity(std::string_view text, Bytes ideal_peak) {
  if (text == "none") return kNoLimit;
  if (const std::optional<double> share = parse_share(text))
    return Bytes{static_cast<std::int64_t>(static_cast<double>(ideal_peak.count()) * *share)};
  try {
    return parse_bytes(text);
  } catch (const InputError& error) {
    throw InputError{fmt::format("{}; or a share of the peak, as in 0.5x; or none", error.what())};
  }
}

}  // namespace tidepool
