#include "tests/oracle/optimum.hpp"

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/machines.hpp"
#include "tests/tiny_case.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::optimum_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

/// The optimum. Checks that its plan replays in the reported time and reads the right bytes.
Optimum answer_of(const OptimumQuery& query) {
  const Optimum found = find_optimum(query);
  if (found.feasible) {
    const RunSpec spec{.pool = "ideal", .capacity = query.capacity, .machine = query.machine};
    CHECK(replay(query.trace, spec, found.plan).makespan == found.makespan);
    CHECK(execute_on_host(query.trace, found.plan, {.threads = false}).outcome == HostOutcome::kOk);
  }
  CHECK(found.exact);
  return found;
}

/// a is made; b and then c fill the memory for `busy` each; a is read. All have 1 kB.
Trace away_and_back(Nanos busy) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.kind = OpKind::kSource, .duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1'000_B});
  build.run({.duration = busy}, {{b, Access::kWrite}});
  build.free(b);
  const BufferId c = build.alloc({.size = 1'000_B});
  build.run({.duration = busy}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 100_ns}, {{a}});
  return build.finish();
}

}  // namespace

TEST_CASE("the optimum waits for a whole swap-out and swap-in if every op in between needs the place") {
  // With memory for two, neither b nor c needs a's place. With memory for one, a must have left (1 us) before b begins,
  // and is swapped in (1 us) after c has ended. In ns: 100 + 1000 + busy + busy + 1000 + 100.
  for (const Nanos busy : {300_ns, 3'000_ns}) {
    const Trace trace = away_and_back(busy);
    CHECK(answer_of({trace, kMachine, 2'000_B, true, true}).makespan == Nanos{200} + busy * 2);
    CHECK(answer_of({trace, kMachine, 1'000_B, true, true}).makespan == Nanos{2'200} + busy * 2);
    CHECK(answer_of({trace, kMachine, 1'000_B, true, true, true}).makespan == Nanos{2'200} + busy * 2);
    CHECK_FALSE(answer_of({trace, kMachine, 1'000_B, false, true}).feasible);  // a source does not run again
    CHECK_FALSE(answer_of({trace, kMachine, 999_B, true, true}).feasible);
  }
}

TEST_CASE("the optimum of recomputing a short chain is revolve's") {
  // 4 layers, memory for x_0, two gradients and s slots: 4 + 1 + 4 runs and 3 - s reruns, as in Griewank and Walther.
  const Trace trace = tests::chain_trace(4);
  for (const std::int64_t slots : {2, 3})
    CHECK(answer_of({trace, kMachine, Bytes{(3 + slots) * 1000}, false, true}).makespan ==
          Nanos{(9 + 3 - slots) * 1000});
}

TEST_CASE("versions from before the step begin on the host if that is faster") {
  // Only the second op reads w, and the first op makes a. In the larger memory, w is swapped in during the first op;
  // otherwise after it. If w began on the device, it would have to leave first.
  TraceBuilder build;
  const BufferId w = build.existing({.size = 1'000_B});
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.duration = 400_ns}, {{a, Access::kWrite}});
  build.free(a);
  build.run({.duration = 100_ns}, {{w}});
  const Trace trace = build.finish();
  CHECK(answer_of({trace, kMachine, 2'000_B, true, false}).makespan == 500_ns);
  CHECK(answer_of({trace, kMachine, 1'000_B, true, false}).makespan == 1'500_ns);
  CHECK_FALSE(answer_of({trace, kMachine, 1'000_B, false, true}).feasible);
}

TEST_CASE("a buffer that no op uses and that outlives the step gets a place before the step ends") {
  // c (1 kB) is an output, but no op writes or reads it. Only a and b (1 kB each) are alive while ops run. So the step
  // needs no more than 2 kB; b goes before c comes.
  TraceBuilder build;
  const BufferId a = build.existing({.size = 1'000_B});
  build.alloc({.size = 1'000_B});
  const BufferId b = build.alloc({.size = 1'000_B});
  build.run({.duration = 10_ns}, {{a}, {b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a, Access::kReadWrite}});
  const Trace trace = build.finish();
  for (const bool addresses : {false, true}) {
    CHECK(answer_of({trace, kMachine, 2'000_B, false, false, addresses}).makespan == 20_ns);
    CHECK(answer_of({trace, kMachine, 2'000_B, false, true, addresses}).makespan == 20_ns);
    CHECK_FALSE(answer_of({trace, kMachine, 1'999_B, false, true, addresses}).feasible);
  }
}

TEST_CASE("the optimum in places chooses them so that no hole costs time") {
  // Of 4 B, x, y and v take 1 B each. Then x is freed and z (2 B) is requested. By the sum of bytes, z fits. With
  // addresses, z fits only if x was placed beside the free byte.
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 1_B}), y = build.alloc({.size = 1_B}), v = build.alloc({.size = 1_B});
  build.run({.duration = 10_ns}, {{x, Access::kWrite}, {y, Access::kWrite}, {v, Access::kWrite}});
  build.free(x);
  const BufferId z = build.alloc({.size = 2_B});
  build.run({.duration = 10_ns}, {{y}, {z, Access::kWrite}});
  build.free(y);
  const BufferId u = build.alloc({.size = 1_B});
  build.run({.duration = 10_ns}, {{v}, {z}, {u, Access::kWrite}});
  const Trace trace = build.finish();
  CHECK(answer_of({trace, kMachine, 4_B, true, true, true}).makespan == 30_ns);
}

TEST_CASE("the optimum in places needs no more than the places that are there at once") {
  // x_0, x_1, x_2 and g_2 are there at once: four places of 1000 B. In 3999 B one of them would have to move.
  const Trace trace = tests::chain_trace(2);
  CHECK(answer_of({trace, kMachine, 4'000_B, false, false, true}).makespan == 5_us);
  CHECK_FALSE(answer_of({trace, kMachine, 3'999_B, false, false, true}).feasible);
}

TEST_CASE("if the host takes time to submit a copy, it is not always best to begin the copy at once") {
  // a is made in no time, read for 1 us, swapped out for c, and read at the end. The host launches an op in 300 ns and
  // submits a copy in 200 ns. If the swap-out is submitted before the first reader, it delays the reader's launch by
  // 200 ns. If it is submitted while the reader runs, it delays nothing. In ns: 600 + 1000 + 6000 + 2000 + 1000 (the
  // swap-in) + 100.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.kind = OpKind::kSource}, {{a, Access::kWrite}});
  build.run({.duration = 1'000_ns}, {{a}});
  build.run({.duration = 6'000_ns}, {});
  const BufferId c = build.alloc({.size = 1'000_B});
  build.run({.duration = 2'000_ns}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 100_ns}, {{a}});
  Machine machine = kMachine;
  machine.launch = 300_ns;
  machine.submit = 200_ns;
  CHECK(answer_of({build.finish(), machine, 1'000_B, true, false}).makespan == 10'700_ns);
}

TEST_CASE("with copies, a plan with places may be faster than a plan by the sum of bytes") {
  // If only bytes are counted, a buffer that begins while a swap-out is under way waits for that copy, even if another
  // hole is large enough.
  const tests::TinyRecipe recipe = tests::tiny_recipe(16'667, 7);
  const Trace trace = recipe.trace();
  OptimumQuery query{trace, recipe.machine, recipe.capacity(), true, true};
  CHECK(answer_of(query).makespan == 29'500_us);
  query.addresses = true;
  CHECK(answer_of(query).makespan == 28'000_us);
}

TEST_CASE("if directions slow each other down, content whose swap-in is under way is not recomputed in its place") {
  // The ops take 9 ms. A copy of 4 ms begins at the end of the second op, and must have ended before the last op but
  // one begins.
  const tests::TinyRecipe recipe = tests::tiny_recipe(122'633, 5);
  const Trace trace = recipe.trace();
  CHECK(answer_of({trace, recipe.machine, recipe.capacity(), true, true}).makespan == 13_ms);
}

TEST_CASE("an op that updates in place and makes another output needs memory for all versions to run again") {
  // v1 = a (3 B); v2 updates it in place, and its op makes b (2 B) as well. With 7 B nothing is dropped for c (2 B). If
  // b were dropped while v2 stays, the rerun would need memory for v1, v2 and b at once: 3 + 3 + 2 B.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 3_B});
  build.run({.duration = 5_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 2_B});
  build.run({.duration = 7_ns}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 2_B});
  build.run({.duration = 11_ns}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 13_ns}, {{a}, {b}});
  const Trace trace = build.finish();
  CHECK(answer_of({trace, kMachine, 7_B, false, true}).makespan == 36_ns);
  // With 5 or 6 B, b is dropped for c. Then both versions are recomputed, in 5 + 7 ns. v2 takes over v1's place, so 5 B
  // are enough.
  CHECK(answer_of({trace, kMachine, 6_B, false, true}).makespan == 48_ns);
  CHECK(answer_of({trace, kMachine, 5_B, false, true}).makespan == 48_ns);
  CHECK_FALSE(answer_of({trace, kMachine, 4_B, false, true}).feasible);
}

TEST_CASE("the optimum of several streams drops content to get bytes that are free sooner than others") {
  // w takes 8 of 16 B, and another stream uses the other 8 B until 100 ns. If w stays, c is made from 100 to 130 ns. In
  // a faster plan, w is swapped in until 8 ns, read until 18 ns and dropped for c; c is made until 48 ns; w is back at
  // 56 ns and is read from 100 to 120 ns.
  TraceBuilder build;
  const StreamId slow = build.stream("1"), quick = build.stream("2");
  const BufferId w = build.existing({.size = 8_B});
  build.run({.duration = 10_ns}, {{w}});
  const BufferId s = build.alloc({.size = 8_B, .stream = slow});
  build.run({.stream = slow, .duration = 100_ns}, {{s, Access::kWrite}});
  build.free(s);
  const BufferId c = build.alloc({.size = 8_B, .stream = quick});
  build.run({.stream = quick, .duration = 30_ns}, {{c, Access::kWrite}});
  build.free(c);
  build.order(OpId{1}, OpId{3});
  build.run({.duration = 20_ns}, {{w}});
  const Trace trace = build.finish();
  CHECK(answer_of({trace, kMachine, 24_B, false, false}).makespan == 120_ns);
  CHECK(answer_of({trace, kMachine, 16_B, false, false}).makespan == 130_ns);
  CHECK(answer_of({trace, kMachine, 16_B, true, false}).makespan == 120_ns);
}

TEST_CASE("the optimum of several streams is not known if the device takes other bytes than the search assumes") {
  // 8 B are free from 30 ns on, 8 B from 100 ns on. a can be made at 100 ns. Its place is taken first, and the device
  // takes the bytes that are free sooner, so b is made from 100 to 190 ns. If a took the other bytes, b would be made
  // from 30 to 120 ns. No plan is faster than that.
  TraceBuilder build;
  const StreamId second = build.stream("1"), third = build.stream("2");
  const BufferId slow = build.alloc({.size = 8_B});
  build.run({.duration = 100_ns}, {{slow, Access::kWrite}});
  const BufferId quick = build.alloc({.size = 8_B, .stream = second});
  build.run({.stream = second, .duration = 30_ns}, {{quick, Access::kWrite}});
  build.free(slow);
  build.free(quick);
  const BufferId a = build.alloc({.size = 8_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 8_B, .stream = third});
  build.run({.stream = third, .duration = 90_ns}, {{b, Access::kWrite}});
  build.free(a);
  build.free(b);
  const Trace trace = build.finish();
  const Optimum found = find_optimum({trace, kMachine, 16_B});
  CHECK_FALSE(found.exact);
  CHECK_FALSE(found.feasible);
  CHECK(found.makespan == 120_ns);
  CHECK(find_optimum({trace, kMachine, 32_B}).exact);
}

TEST_CASE("the search gives up early in a step whose partial plans are unlike each other") {
  // The time for a new partial plan grows with the number of those that it neither dominates nor is dominated by.
  const tests::TinyRecipe recipe = tests::tiny_recipe_of_streams(39'239, 7);
  const Trace trace = recipe.trace();
  const Optimum found = find_optimum({.trace = trace,
                                      .machine = recipe.machine,
                                      .capacity = recipe.capacity(),
                                      .swap = true,
                                      .remat = true,
                                      .most_states = 100'000});
  CHECK_FALSE(found.exact);
  CHECK(found.states < 100'000);
  CHECK(found.makespan >= baseline_time(trace, recipe.machine.launch));
}

}  // namespace tidepool::optimum_test
