#include "simulator/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "simulator/checker.hpp"
#include "simulator/driver.hpp"
#include "simulator/registry.hpp"
#include "simulator/timeline.hpp"
#include "traces/error.hpp"

namespace tidepool {

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
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before)
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{i}).value(), Bytes{}, Bytes{}});
  for (const Step& step : trace.steps())
    if (step.kind == StepKind::kRun)
      timeline.apply({Verb::kRun, OpId{step.id}, step.id, {}, {}});
    else if (step.kind == StepKind::kAlloc)
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{step.id}).value(), Bytes{}, Bytes{}});
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

Result drive(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies, bool may_swap,
             bool keep_plan, std::optional<Shortage>& shortage) {
  const Spec pool_spec = parse_spec(spec.pool);
  const PoolInfo& info = find_pool(pool_spec.name);
  const Options pool_options{info.name, info.options, pool_spec.options, spec.seed};
  const std::unique_ptr<Pool> pool = info.make(pool_options);
  Driver driver{trace, spec, baseline_time(trace, spec.machine.launch), *pool, policies, may_swap, keep_plan};
  Result result = driver.run();
  shortage = driver.shortage();
  return result;
}

}  // namespace

Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan) {
  std::optional<Shortage> unused;
  return drive(trace, spec, std::move(policies), may_swap, keep_plan, unused);
}

std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec) {
  Chain chain = make_chain(spec);
  std::optional<Shortage> shortage;
  drive(trace, spec, std::move(chain.policies), chain.may_swap, false, shortage);
  return shortage;
}

Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  Checker checker{trace, spec};
  std::vector<VersionState> states;
  Timeline timeline{trace, spec.machine, spec.assume, states};
  for (const Action& action : plan.actions) {
    checker.check(action);
    timeline.apply(action);
  }
  checker.finish();
  return timeline.totals();
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

Bytes parse_capacity(std::string_view text, Bytes ideal_peak) {
  if (text == "none") return kNoLimit;
  if (!text.empty() && text.back() == 'x') {
    double fraction = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, fraction);
    if (error == std::errc{} && end == text.data() + text.size() - 1 && fraction > 0 && fraction < 1e6)
      return Bytes{static_cast<std::int64_t>(static_cast<double>(ideal_peak.count()) * fraction)};
    throw InputError{fmt::format("'{}' is not a fraction of the peak; expected a number and x, as in 0.5x", text)};
  }
  try {
    return parse_bytes(text);
  } catch (const InputError& error) {
    throw InputError{fmt::format("{}; or a share of the peak, as in 0.5x; or none", error.what())};
  }
}

}  // namespace tidepool
