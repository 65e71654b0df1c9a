// Slots of fixed sizes, and swapping between them, in closed form.
#include "policies/swap/swapadvisor/slot_pool.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/paths.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::slots_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

class NoDevice final : public Device {
 public:
  std::optional<Bytes> reserve(Bytes) override { return {}; }
  void release(Bytes, Bytes) override {}
  Bytes reserve_addresses(Bytes) override { return {}; }
  void release_addresses(Bytes, Bytes) override {}
  bool map(Bytes, Bytes, Bytes) override { return false; }
  void unmap(Bytes, Bytes, Bytes) override {}
};

/// Ops 0 and 1 make a (100 B) and b (60 B) | op 2 | op 3 makes and frees p (50 B) | ops 4, 5 | op 6 reads b, op 7 reads
/// a.
Trace two_sizes() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 60_B});
  build.run({.duration = 100_ns}, {{b, Access::kWrite}});
  build.run({.duration = 100_ns}, {});
  const BufferId p = build.alloc({.size = 50_B});
  build.run({.duration = 100_ns}, {{p, Access::kWrite}});
  build.free(p);
  build.run({.duration = 100_ns}, {});
  build.run({.duration = 100_ns}, {});
  build.run({.duration = 100_ns}, {{b, Access::kRead}});
  build.free(b);
  build.run({.duration = 100_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

}  // namespace

TEST_CASE("a pool of slots gives the lowest free slot of a size's class, or none") {
  SlotPool pool{{{10_B, 2}, {30_B, 1}}};
  NoDevice device;
  const Trace trace = two_sizes();
  pool.start(trace, 50_B, device);
  CHECK(pool.largest_hole() == 30_B);
  const auto place = [&](Bytes size) { return pool.place({.size = size}); };
  const std::optional<Block> first = place(10_B), second = place(1_B), third = place(11_B);
  CHECK(first == Block{0_B, 10_B});
  CHECK(second == Block{10_B, 10_B});
  CHECK(third == Block{20_B, 30_B});
  CHECK_FALSE(place(5_B).has_value());  // both slots of its class are in use
  CHECK_FALSE(place(31_B).has_value());
  CHECK(pool.largest_hole() == 0_B);
  pool.release(*second);
  pool.release(*first);
  CHECK(place(9_B) == first);
  CHECK(pool.largest_hole() == 10_B);
}

TEST_CASE("a step needs slots for the storages that one op uses, and for all storages that are live") {
  const Trace trace = two_sizes();
  const SlotDemand demand{trace, {}, 20_B};
  CHECK(demand.sizes() == std::vector<Bytes>{60_B, 100_B});  // p takes a slot of 60 B as well
  const SlotClasses apart{{60_B, 0}, {100_B, 0}}, together{{100_B, 0}};
  CHECK(demand.least(apart) == std::vector<std::uint32_t>{1, 1});
  CHECK(demand.least(together) == std::vector<std::uint32_t>{1});
  // p is live until op 4 begins.
  CHECK(demand.live(apart) == std::vector<std::vector<Bytes>>{{0_B, 1_B, 1_B, 2_B, 2_B, 1_B, 1_B, 1_B},
                                                              {1_B, 1_B, 1_B, 1_B, 1_B, 1_B, 1_B, 1_B}});
  CHECK(demand.live(together)[0] == std::vector<Bytes>{1_B, 2_B, 2_B, 3_B, 3_B, 2_B, 2_B, 2_B});
}

TEST_CASE("if a class is full, its storage with the latest next use is evicted, and swapped in when a slot is free") {
  // There is one slot of 60 B and one of 100 B. p takes the slot of b, although a is used after b.
  const Trace trace = two_sizes();
  const auto run = [&](Bytes capacity) {
    const RunSpec spec{.pool = "ideal",
                       .policy = "swapadvisor(with=swap,granule=20B,effort=1)",
                       .capacity = capacity,
                       .machine = kMachine};
    Result result = simulate(trace, spec, true);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(replay(trace, spec, result.realised) == result.totals);
    CHECK(result.totals.makespan == result.baseline);
    return result;
  };
  const VersionId b = trace.made(OpId{1})[0];
  std::vector<Action> copies;
  for (Action action : run(160_B).realised.actions) {
    if (action.verb != Verb::kSwapOut && action.verb != Verb::kSwapIn) continue;
    action.offset = action.size = {};
    copies.push_back(action);
  }
  CHECK(copies ==
        std::vector<Action>{{Verb::kSwapOut, OpId{2}, b.value(), {}, {}}, {Verb::kSwapIn, OpId{5}, b.value(), {}, {}}});
  CHECK(run(220_B).totals.swap_out == 0_B);
}

TEST_CASE("a longer search over allocations does not find a worse one") {
  const Trace trace = load_trace(paths::source_folder() + "/traces/samples/unet.tide");
  Nanos before{1'000'000'000'000}, first;
  for (const int effort : {1, 8, 40}) {
    RunSpec spec{.policy = "swapadvisor(with=swap,effort=" + std::to_string(effort) + ")",
                 .capacity = trace.ideal_peak() / 10 * 7,
                 .machine = find_machine("a100-pcie4")};
    const Result result = simulate(trace, spec);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.makespan <= before);
    before = result.totals.makespan;
    if (effort == 1) first = before;
  }
  CHECK(before < first);
}

}  // namespace tidepool::slots_test
