// tide-remat and its parts on steps that can be computed by hand.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policies/planning/search/early_drops.hpp"
#include "policies/planning/search/repeated_pool.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/engine/segment_device.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::tide_remat_test {

namespace {

using Touch = TraceBuilder::Touch;

/// A chain of layers. Backward reads their outputs from the last to the first. From layer 8 on, every fourth layer also
/// reads the output of the layer four before it. Sizes are 1 to 5 KiB, times 10 to 70 us.
Trace network(int layers) {
  TraceBuilder builder;
  std::vector<BufferId> outputs;
  const auto run = [&](const std::vector<BufferId>& reads, int i) {
    const BufferId made = builder.alloc({.size = Bytes{1'024 * (1 + i * 7 % 5)}});
    std::vector<Touch> touches{{made, Access::kWrite}};
    for (const BufferId read : reads) touches.push_back({read});
    builder.run({.duration = Nanos{10'000 * (1 + i * 5 % 7)}}, touches);
    return made;
  };
  for (int i = 0; i < layers; ++i) {
    std::vector<BufferId> reads;
    if (i > 0) reads.push_back(outputs.back());
    if (i > 4 && i % 4 == 0) reads.push_back(outputs[static_cast<std::size_t>(i - 4)]);
    outputs.push_back(run(reads, i));
  }
  BufferId gradient = run({outputs.back()}, layers);
  for (int i = layers - 2; i >= 0; --i) {
    const BufferId next = run({gradient, outputs[static_cast<std::size_t>(i)]}, i);
    builder.free(gradient);
    builder.free(outputs[static_cast<std::size_t>(i + 1)]);
    gradient = next;
  }
  builder.free(outputs.front());
  return builder.finish();
}

RunSpec spec_of(const Trace& trace, const std::string& policy, const std::string& pool, int percent) {
  RunSpec spec{.pool = pool, .policy = policy, .machine = {}};
  spec.capacity = trace.ideal_peak() * percent / 100;
  return spec;
}

}  // namespace

TEST_CASE("a drop moves to the first request after the last use, and the lifetime ends there") {
  // Requests 0 to 4 are for a to e. Op 2 reads a; no later op reads b. Both are dropped for request 4.
  TraceBuilder builder;
  builder.only_given_outputs();
  std::vector<BufferId> buffers;
  std::vector<Action> actions;
  for (std::size_t i = 0; i < 5; ++i) {
    buffers.push_back(builder.alloc({.size = 10_B}));
    std::vector<Touch> touches{{buffers.back(), Access::kWrite}};
    if (i == 2) touches.push_back({buffers.front()});
    builder.run({}, touches);
  }
  const Trace trace = builder.finish();
  Plan plan;
  PlaceLog log;
  const VersionId a = trace.made(OpId{std::size_t{0}})[0], b = trace.made(OpId{std::size_t{1}})[0];
  for (std::uint32_t i = 0; i < 5; ++i) {
    const OpId op{std::size_t{i}};
    if (i == 4)
      for (const VersionId v : {a, b})
        plan.actions.push_back({.verb = Verb::kDrop, .before = op, .subject = v.value()});
    plan.actions.push_back({.verb = Verb::kAlloc, .before = op, .subject = trace.made(op)[0].value()});
    plan.actions.push_back({.verb = Verb::kRun, .before = op, .subject = i});
    log.lives.push_back({.size = 10_B, .end = i < 2 ? 4 : PlaceLog::kNever});
  }

  const std::vector<EarlyDrop> drops = drop_early(trace, plan, log);
  REQUIRE(drops.size() == 2);
  CHECK(drops[0].request == 2);
  CHECK(drops[0].version == b);
  CHECK(drops[1].request == 3);
  CHECK(drops[1].version == a);
  CHECK(log.lives[0].end == 3);
  CHECK(log.lives[1].end == 2);
  CHECK(log.lives[2].end == PlaceLog::kNever);
}

TEST_CASE("lifetimes share a place only if they do not overlap") {
  // Lifetime 0 covers requests 0 and 1, lifetime 1 begins at request 1, lifetime 2 at request 2. So lifetime 2 can
  // have the place of lifetime 0, and lifetime 1 cannot.
  PlaceLog log;
  log.lives = {{.size = 512_B, .end = 2}, {.size = 512_B}, {.size = 512_B}};
  const FoundPlaces places = find_places(log, 512_B, 1'024_B, 0);
  CHECK(places.height == 1'024_B);
  CHECK(places.offsets[0] == places.offsets[2]);
  CHECK(places.offsets[0] != places.offsets[1]);
}

TEST_CASE("a cycle ends with the places with which it began") {
  // The cycle has requests 2 to 4. Buffer a has lifetime 0 when the cycle begins and lifetime 4 when it ends; b is
  // always live. Lifetime 0 ends after lifetime 2 has got its place, so lifetime 3 fits only in the place of lifetime
  // 0, until lifetime 4 begins. Without the cycle, lifetime 4 could have the place of lifetime 2.
  PlaceLog log;
  log.lives = {{.size = 512_B, .end = 3}, {.size = 512_B}, {.size = 512_B, .end = 4},
               {.size = 512_B, .end = 4}, {.size = 512_B}, {.size = 512_B}};
  const VersionId a{0}, b{1}, c{2}, d{3};
  for (const VersionId v : {a, b, c, d, a, c}) log.answers.push_back({v, true});
  const PlaceLog::Begin first{2, 2}, last{5, 5};
  log.cycle = PlaceLog::Cycle{first, last, std::vector<std::uint32_t>(6, PlaceLog::kNever), {0, 1}};
  log.cycle->twin[4] = 0;
  const FoundPlaces places = find_places(log, 512_B, 1'536_B, 1);
  CHECK(places.height == 1'536_B);
  CHECK(places.offsets[4] == places.offsets[0]);
  CHECK(places.offsets[3] == places.offsets[0]);
  CHECK(std::set<Bytes>{places.offsets[0], places.offsets[1], places.offsets[2]}.size() == 3);

  // The run begins with a and b in these places, and then repeats the cycle.
  TraceBuilder builder;
  for (int i = 0; i < 2; ++i) builder.content(builder.existing({.size = 512_B}));
  for (int i = 0; i < 2; ++i) builder.content(builder.alloc({.size = 512_B}));
  for (int i = 2; i < 4; ++i) builder.free(BufferId{static_cast<std::size_t>(i)});
  const RepeatedPool::Places repeated = RepeatedPool::places_of(log, places.offsets, builder.finish(), {});
  CHECK(repeated.stays[a.index()].size() == 2);
  CHECK(repeated.stays[b.index()].size() == 1);
  CHECK(repeated.stays[c.index()].size() == 1);
  CHECK(repeated.stays[a.index()][0].offset == places.offsets[0]);
}

TEST_CASE("lifetimes that end before the cycle have no place") {
  // The cycle has requests 2 and 3. Lifetime 0 is at the same time as 1, which outlasts the cycle; 2 and 3 have only
  // one place beside it.
  PlaceLog log;
  log.lives = {{.size = 1'024_B, .end = 1}, {.size = 512_B}, {.size = 512_B, .end = 3}, {.size = 512_B, .end = 4}};
  for (std::size_t v = 0; v < 4; ++v) log.answers.push_back({VersionId{v}, true});
  log.cycle = PlaceLog::Cycle{{2, 2}, {4, 4}, std::vector<std::uint32_t>(4, PlaceLog::kNever), {}};
  CHECK(find_places(log, 512_B, 1'024_B, 1).height == 1'024_B);
}

TEST_CASE("a version gets the place that it has at this moment of the recorded run") {
  // Version 0 is in the place before op 1 to op 3, version 1 from then on, and version 0 again before op 5.
  PlaceLog log;
  log.lives = {{.size = 512_B, .end = 1, .before = OpId{1}},
               {.size = 512_B, .end = 2, .before = OpId{3}},
               {.size = 512_B, .before = OpId{5}}};
  log.answers = {{VersionId{0}, true}, {VersionId{1}, true}, {VersionId{0}, true}};
  log.cycle = PlaceLog::Cycle{{0, 0}, {3, 3}, std::vector<std::uint32_t>(3, PlaceLog::kNever), {}};
  TraceBuilder builder;
  for (int i = 0; i < 2; ++i) builder.content(builder.alloc({.size = 512_B}));
  for (int i = 0; i < 6; ++i) builder.run({.duration = 1_us}, {});
  const Trace trace = builder.finish();
  RepeatedPool pool{std::make_shared<RepeatedPool::Places>(RepeatedPool::places_of(log, {0_B, 0_B, 0_B}, trace, {}))};
  SegmentDevice device{512_B};
  pool.start(trace, 512_B, device);
  const auto asks = [&](std::size_t version, std::size_t op) {
    return pool.place({.size = 512_B, .version = VersionId{version}, .before = OpId{op}});
  };
  CHECK_FALSE(asks(1, 1));  // too early
  const std::optional<Block> first = asks(0, 1);
  REQUIRE(first);
  pool.release(*first);  // it is evicted, and returns
  REQUIRE(asks(0, 2));
  CHECK_FALSE(asks(1, 3));  // the place is taken
  pool.release(*first);
  CHECK_FALSE(asks(0, 4));
  CHECK(asks(1, 4));
}

TEST_CASE("lifetimes that had places keep their order, and new ones are placed above them") {
  // By their numbers, lifetime 0 would be below lifetime 1; in the earlier run, it was above. Lifetime 2 is new. All
  // three are live together.
  PlaceLog earlier;
  earlier.lives = {{.size = 512_B}, {.size = 1'024_B}};
  earlier.answers = {{VersionId{5}, true}, {VersionId{6}, false}, {VersionId{6}, true}};
  PlaceLog log = earlier;
  log.lives.push_back({.size = 2'048_B});
  log.answers.push_back({VersionId{4}, true});
  const FoundPlaces places = find_like_places(log, earlier, {1'024_B, 0_B}, 512_B);
  CHECK(places.offsets == std::vector<Bytes>{1'024_B, 0_B, 1'536_B});
  CHECK(places.height == 3'584_B);
}

TEST_CASE("tide-remat is never slower than the policies that it tries") {
  const Trace trace = network(60);
  for (const char* pool : {"ideal", "best-fit", "first-fit", "bfc"})
    for (const int percent : {30, 50, 70, 90}) {
      const Result ours = simulate(trace, spec_of(trace, "tide-remat(effort=10)", pool, percent));
      for (const char* part : {"next-use", "next-use(distance=0.5)", "dtr-eq", "msps", "coop"}) {
        if (std::string{pool} == "ideal" && std::string{part} == "coop") continue;  // coop needs addresses
        INFO(pool << " " << percent << " % " << part);
        const Result theirs = simulate(trace, spec_of(trace, part, pool, percent));
        if (theirs.outcome != Outcome::kOk) continue;
        CHECK(ours.outcome == Outcome::kOk);
        CHECK(ours.totals.makespan <= theirs.totals.makespan);
      }
    }
}

TEST_CASE("planned places slow tide-remat by at most a hundredth") {
  const Trace trace = network(60);
  for (const int percent : {30, 50, 70, 90}) {
    INFO(percent << " %");
    const Result bytes = simulate(trace, spec_of(trace, "tide-remat(effort=10)", "ideal", percent));
    const Result placed = simulate(trace, spec_of(trace, "tide-remat(effort=10)", "best-fit", percent));
    REQUIRE(placed.outcome == Outcome::kOk);
    CHECK(placed.totals.footprint <= trace.ideal_peak() * percent / 100);
    CHECK(placed.totals.makespan * 100 <= bytes.totals.makespan * 101);
  }
}

TEST_CASE("with `learn`, tide-remat reacts in the first iteration and knows the future from the second one on") {
  const Trace trace = network(60);
  RunSpec learning = spec_of(trace, "tide-remat(effort=10,learn=on)", "best-fit", 50);
  RunSpec reacting = spec_of(trace, "dtr-eq", "best-fit", 50);
  CHECK(simulate(trace, learning).totals == simulate(trace, reacting).totals);
  learning.iterations = reacting.iterations = 3;
  const Result learnt = simulate(trace, learning);
  REQUIRE(learnt.outcome == Outcome::kOk);
  CHECK(learnt.totals.makespan < simulate(trace, reacting).totals.makespan);
}

}  // namespace tidepool::tide_remat_test
