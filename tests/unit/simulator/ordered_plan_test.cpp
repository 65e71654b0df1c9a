// Plans that run the ops of a step in another order: files, execution, refusals, policies and bounds.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "simulator/ordered_step.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/known_uses.hpp"
#include "tests/machines.hpp"
#include "tests/oracle/optimum.hpp"
#include "tests/updates_trace.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::ordered_plan_test {

using tidepool::tests::kOptimised;
using tidepool::tests::two_updates;

namespace {

constexpr Evidence kSchema = Evidence::kSchema;

const std::vector<std::uint32_t> kEager{0, 2, 1, 3};

RunSpec in_70_bytes(const std::string& policy) {
  return {.pool = "ideal", .policy = policy, .capacity = 70_B, .machine = tests::uneven()};
}

std::string refusal(const Trace& trace, const StepOrder& order) {
  try {
    const OrderedStep step{trace, order};
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

bool reads_the_recorded_bytes(const Trace& trace, const Plan& plan) {
  const HostReport report = execute_on_host(trace, plan, {.threads = false, .arena = 1_MiB});
  UNSCOPED_INFO(report.message);
  return report.outcome == HostOutcome::kOk && report.corrupt == 0_B;
}

}  // namespace

TEST_CASE("a plan may run ops in another order, which takes no additional time") {
  const Trace trace = two_updates();
  CHECK(simulate(trace, in_70_bytes("none")).outcome == Outcome::kOutOfMemory);
  const RunSpec spec = in_70_bytes("order-peak");
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == result.baseline);
  CHECK(result.totals.peak == 70_B);
  REQUIRE(result.realised.order);
  CHECK(result.realised.order->ops == kEager);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(reads_the_recorded_bytes(trace, result.realised));
  require_sound(make_program(trace, result.realised, {}));
}

TEST_CASE("the recorded order is kept if the memory is enough for it") {
  RunSpec spec = in_70_bytes("order-peak");
  spec.capacity = 120_B;
  CHECK_FALSE(simulate(two_updates(), spec, true).realised.order);
}

TEST_CASE("the policies after order-peak plan the step in its order") {
  RunSpec spec = in_70_bytes("order-peak(rule=eager)+lru-swap");
  spec.capacity = 65_B;
  spec.overhead_limit.reset();
  const Trace trace = two_updates();
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.swap_out >= 10_B);  // a weight
  REQUIRE(result.realised.order);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(reads_the_recorded_bytes(trace, result.realised));
}

TEST_CASE("a plan file has the order that the plan needs, and gives it back") {
  const Trace trace = two_updates();
  const RunSpec spec = in_70_bytes("order-peak");
  const Result result = simulate(trace, spec, true);
  const PlanFile file{trace.hash(), spec, result.totals, result.realised};
  const std::string text = plan_text(file);
  CHECK(text.starts_with("{\"tidepool_plan\":2,"));
  CHECK_THAT(text, ContainsSubstring("\"order\":{\"rule\":\"eager\",\"lists_apart\":true,"
                                     "\"ops\":[[0,1],[2,1],[1,1],[3,1]]}"));
  CHECK(parse_plan(Input{"run.plan", text}, &trace).plan == result.realised);
  CHECK(parse_plan(Input{"run.plan", text}).plan == result.realised);

  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), from.size(), to);
    try {
      parse_plan(Input{"run.plan", wrong}, &trace);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  CHECK(refused(trace.hash(), "0123456789abcdef") ==
        "run.plan:1: made for trace 0123456789abcdef; expected the trace given, " + trace.hash());
  CHECK(refused("[2,1],[1,1]", "[1,1]") == "run.plan:1: order: 3 ops; expected each of the step's 4 once");
  CHECK(refused("[0,1],[2,1]", "[2,1],[0,1]") ==
        "run.plan:1: order: op 2 before op 0; expected op 0 first: op 2 depends on it");
  CHECK(refused("[3,1]", "[3,0]") == "run.plan:1: 'ops' is 0; expected 1 to 4294967292");
}

TEST_CASE("an order is accepted only if it has all ops and keeps their dependencies") {
  const Trace trace = two_updates();
  CHECK(refusal(trace, {"", false, kEager}).empty());
  CHECK(refusal(trace, {"", false, {0, 1, 2, 2}}) == "order: 4 ops; expected each of the step's 4 once");
  CHECK(refusal(trace, {"", false, {0, 1, 2, 4}}) == "order: 4 ops; expected each of the step's 4 once");
  CHECK(refusal(trace, {"", false, {3, 0, 1, 2}}) ==
        "order: op 3 before op 1; expected op 1 first: op 3 depends on it");
  TraceBuilder build{{"0", "1"}};
  build.run({.name = build.text("op")}, {});
  CHECK(refusal(build.finish(), {"", false, {0}}) ==
        "order: 2 streams; expected one: the recording lacks some dependencies between streams");
}

TEST_CASE("every policy that reorders computes the bytes of the recorded order, also over several iterations") {
  int reordered = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 150 : 20); ++seed) {
    const std::optional<Trace> trace = tests::step_of_known_uses(seed, 12);
    if (!trace) continue;
    BoundCache bounds;
    for (const char* policy : {"order-peak(effort=100)", "order-peak(rule=least)+lru-swap", "order-peak+dtr",
                               "tide(with=order+swap,effort=1)", "tide(with=order+swap+remat,effort=1)",
                               "xla-order+dtr", "swapadvisor(effort=3)"})
      for (const int percent : {60, 80, 95})
        for (const int iterations : {1, 3, 12}) {
          INFO("seed " << seed << " " << policy << " at " << percent << " %, " << iterations << " iterations");
          const bool steady = iterations == 12;
          const RunSpec spec{.pool = seed % 2 == 0 ? "ideal" : "best-fit",
                             .policy = policy,
                             .capacity = trace->ideal_peak() * percent / 100,
                             .machine = tests::uneven(),
                             .steady = steady,
                             .iterations = iterations};
          const Result result = simulate(*trace, spec, true);
          REQUIRE(result.outcome != Outcome::kError);
          const std::optional<Bound> bound = bounds.find(*trace, spec);
          if (result.outcome != Outcome::kOk) continue;
          ++ended;
          reordered += result.realised.order ? 1 : 0;
          CHECK(replay(*trace, spec, result.realised) == result.totals);
          CHECK(reads_the_recorded_bytes(*trace, result.realised));
          if (!bound || (steady && !result.cycle.settled)) continue;
          CHECK(bound->feasible);
          CHECK(bound->makespan <= result.totals.makespan);
        }
  }
  CHECK(ended > (kOptimised ? 1'000 : 100));
  CHECK(reordered > (kOptimised ? 200 : 20));
}

TEST_CASE("tide is never slower with order than without") {
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 60 : 6); ++seed) {
    const std::optional<Trace> trace = tests::step_of_known_uses(seed, 14);
    if (!trace) continue;
    for (const int percent : {60, 85}) {
      INFO("seed " << seed << " at " << percent << " %");
      RunSpec spec{.pool = "ideal",
                   .policy = "tide(effort=10)",
                   .capacity = trace->ideal_peak() * percent / 100,
                   .machine = tests::uneven()};
      const Result without = simulate(*trace, spec);
      spec.policy = "tide(with=order+swap+remat,effort=10)";
      const Result with = simulate(*trace, spec);
      if (without.outcome == Outcome::kOk) REQUIRE(with.outcome == Outcome::kOk);
      if (without.outcome == Outcome::kOk) CHECK(with.totals.makespan <= without.totals.makespan);
      faster += with.outcome == Outcome::kOk &&
                (without.outcome != Outcome::kOk || with.totals.makespan < without.totals.makespan);
    }
  }
  CHECK(faster > (kOptimised ? 5 : 0));
}

TEST_CASE("bounds for any order are at most the optimum of every order") {
  int infeasible = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 80 : 8); ++seed) {
    const std::optional<Trace> trace = tests::step_of_known_uses(seed, 5);
    if (!trace) continue;
    std::vector<std::uint32_t> order(trace->ops().size());
    std::iota(order.begin(), order.end(), 0u);
    const Machine machine = tests::byte_per_nano();
    for (const int percent : {45, 65, 85})
      for (const auto& [swap, remat] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
        const Bytes capacity = trace->ideal_peak() * percent / 100;
        std::optional<Nanos> best;
        std::vector<std::uint32_t> next = order;
        do {
          std::optional<OrderedStep> step;
          try {
            step.emplace(*trace, StepOrder{"", false, next});
          } catch (const PlanError&) {
            continue;
          }
          const Optimum found = find_optimum({step->trace(), machine, capacity, swap, remat, false, 50'000});
          if (found.feasible && (!best || found.makespan < *best)) best = found.makespan;
        } while (std::next_permutation(next.begin(), next.end()));
        BoundQuery query{.trace = *trace, .machine = machine, .capacity = capacity, .swap = swap, .remat = remat};
        query.order = true;
        for (const Bound& bound : compute_bounds(query, BoundEffort::kAll)) {
          INFO("seed " << seed << " at " << percent << " %: " << bound.name << " with " << bound.with << ": "
                       << bound.proof);
          CHECK(bound.with.starts_with("order"));
          infeasible += bound.feasible ? 0 : 1;
          if (!best) continue;
          CHECK(bound.feasible);
          CHECK(bound.makespan <= *best);
        }
      }
  }
  CHECK(infeasible > 10);
}

TEST_CASE("if every order uses content before and after an op, the bound order-swap counts its swap-out and swap-in") {
  // a (100 B) is made first and read last. In between, each op reads the output of the one before.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B}), b = build.alloc({.size = 10_B}), c = build.alloc({.size = 100_B}),
                 d = build.alloc({.size = 10_B});
  const Op op{.name = build.text("op"), .duration = 10_ns};
  build.run(op, {{a, Access::kWrite, kSchema}});
  build.run(op, {{a, Access::kRead, kSchema}, {b, Access::kWrite, kSchema}});
  build.run(op, {{b, Access::kRead, kSchema}, {c, Access::kWrite, kSchema}, {d, Access::kWrite, kSchema}});
  build.run(op, {{d, Access::kRead, kSchema}, {a, Access::kRead, kSchema}});
  for (const BufferId each : {a, b, c, d}) build.free(each);
  const Trace trace = build.finish();
  const Machine machine = tests::byte_per_nano();
  const auto best = [&](Bytes capacity, bool swap) {
    return *best_bound(
        {.trace = trace, .machine = machine, .capacity = capacity, .swap = swap, .assume = {}, .order = true});
  };
  CHECK(best(215_B, true).makespan == 40_ns);  // copies of 5 B take less time than the ops around op 2
  // Op 2 uses 120 B, so 90 of the 220 live bytes are absent. They are swapped out in 90 ns before it, and swapped in
  // within 90 ns after it.
  CHECK(best(130_B, true).name == "order-swap");
  CHECK(best(130_B, true).makespan == 90_ns + 10_ns + 90_ns);
  CHECK_FALSE(best(219_B, false).feasible);
  CHECK(best(220_B, false).feasible);
}

}  // namespace tidepool::ordered_plan_test
