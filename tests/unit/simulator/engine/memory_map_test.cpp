// Address ranges to which memory with other addresses is mapped, in every executor.
#include "simulator/engine/memory_map.hpp"

#include <utility>
#include <vector>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::memory_map_test {

using tidepool::tests::PlanWriter;

namespace {

using Pieces = std::vector<std::pair<Bytes, Bytes>>;

Pieces pieces_of(const MemoryMap& map, Bytes address, Bytes size) {
  Pieces pieces;
  map.for_each_piece(address, size, [&](Bytes first, Bytes length) { pieces.emplace_back(first, length); });
  return pieces;
}

/// The messages with which the checker and the host refuse `plan`.
std::pair<std::string, std::string> refusals(const Trace& trace, const Plan& plan) {
  std::pair<std::string, std::string> messages;
  try {
    replay(trace, {}, plan);
  } catch (const PlanError& error) {
    messages.first = error.what();
  }
  try {
    execute_on_host(trace, plan);
  } catch (const PlanError& error) {
    messages.second = error.what();
  }
  return messages;
}

}  // namespace

TEST_CASE("mapped addresses mean the memory that they show, and other addresses mean themselves") {
  MemoryMap map;
  CHECK(map.map(100_B, 10_B, 20_B));
  CHECK(map.map(110_B, 10_B, 50_B));
  CHECK(map.map(130_B, 10_B, 0_B));
  CHECK_FALSE(map.map(119_B, 2_B, 70_B));
  CHECK(pieces_of(map, 95_B, 50_B) ==
        Pieces{{95_B, 5_B}, {20_B, 10_B}, {50_B, 10_B}, {120_B, 10_B}, {0_B, 10_B}, {140_B, 5_B}});
  CHECK(pieces_of(map, 105_B, 6_B) == Pieces{{25_B, 5_B}, {50_B, 1_B}});
  CHECK(map.shows(59_B, 1_B));
  CHECK_FALSE(map.shows(60_B, 100_B));
  CHECK(map.covers(100_B, 20_B));
  CHECK_FALSE(map.covers(100_B, 21_B));
  CHECK_FALSE(map.unmap(115_B, 10_B));
  CHECK(map.unmap(105_B, 10_B));
  CHECK(pieces_of(map, 100_B, 20_B) == Pieces{{20_B, 5_B}, {105_B, 10_B}, {55_B, 5_B}});
}

TEST_CASE("two live buffers with the same memory are refused, whatever their addresses are") {
  // Memory is reserved from 0 to `reserved`, and its first 4 MiB are mapped to the addresses from 100 MiB on.
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 3_MiB});
  build.run({}, {{x, Access::kWrite}});
  const BufferId y = build.alloc({.size = 2_MiB});
  build.run({}, {{y, Access::kWrite}});
  build.run({}, {{x, Access::kRead}, {y, Access::kRead}});
  const Trace trace = build.finish();
  const VersionId a = trace.first_version(x), b = trace.first_version(y);
  const auto plan = [&](Bytes second, Bytes reserved) {
    PlanWriter writer{trace};
    writer.reserve(0_B, reserved, 2).map(100_MiB, 4_MiB, 0);
    writer.alloc(a, 100_MiB).run(OpId{0}).alloc(b, second).run(OpId{1}).run(OpId{2});
    return writer.plan();
  };
  // The mapped memory ends at 4 MiB; the reserved memory behind it is free.
  CHECK(refusals(trace, plan(4_MiB, 6_MiB)) == std::pair<std::string, std::string>{});
  const auto [checked, executed] = refusals(trace, plan(2_MiB, 6_MiB));
  CHECK(checked == "alloc version 1 before op 1: it would overlap version 0");
  CHECK(executed == "alloc version 1 before op 1: [2097152, +2097152) is in use");
  CHECK(refusals(trace, plan(0_B, 2_MiB)).first ==
        "map [104857600, +4194304) to [0, +4194304) before op 0: the memory that it maps to is not reserved");
}

TEST_CASE("addresses with memory of their own cannot show other memory, and addresses that do cannot be reserved") {
  TraceBuilder build;
  build.run({}, {});
  const Trace trace = build.finish();
  PlanWriter over{trace};
  over.reserve(0_B, 8_MiB, 4).map(6_MiB, 4_MiB, 0).run(OpId{0});
  CHECK(refusals(trace, over.plan()) ==
        std::pair<std::string, std::string>{
            "map [6291456, +4194304) to [0, +4194304) before op 0: these addresses are reserved memory",
            "map [6291456, +4194304) to [0, +4194304) before op 0: part of it is reserved"});
  PlanWriter under{trace};
  under.reserve(0_B, 4_MiB, 2).map(8_MiB, 4_MiB, 0).reserve(10_MiB, 2_MiB, 1).run(OpId{0});
  CHECK(refusals(trace, under.plan()) ==
        std::pair<std::string, std::string>{
            "reserve [10485760, +2097152) before op 0: these addresses are mapped to other memory",
            "reserve [10485760, +2097152) before op 0: part of it is mapped to other memory"});
}

TEST_CASE("memory that other addresses show cannot be released, and addresses in use cannot be unmapped") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 2_MiB});
  build.run({}, {{x, Access::kWrite}});
  const Trace trace = build.finish();
  PlanWriter gone{trace};
  gone.reserve(0_B, 2_MiB, 1).map(100_MiB, 2_MiB, 0).release(0_B, 2_MiB);
  CHECK(refusals(trace, gone.plan()).first == "release [0, +2097152) before op 0: other addresses are mapped to it");
  PlanWriter used{trace};
  used.reserve(0_B, 2_MiB, 1).map(100_MiB, 2_MiB, 0).alloc(trace.first_version(x), 100_MiB).unmap(100_MiB, 2_MiB);
  CHECK(refusals(trace, used.plan()) ==
        std::pair<std::string, std::string>{"unmap [104857600, +2097152) before op 0: it is in use",
                                            "unmap [104857600, +2097152) before op 0: version 0 has its place there"});
}

TEST_CASE("a buffer in mapped addresses waits for the earlier users of its memory at other addresses") {
  // x is dropped while its swap-out (1,048,576 ns) is under way. If y gets the same memory through mapped addresses,
  // op1 waits for the swap-out; elsewhere it does not.
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 1_MiB});
  build.run({.duration = 10_us}, {{x, Access::kWrite}});
  const BufferId y = build.alloc({.size = 1_MiB});
  build.run({.duration = 10_us}, {{y, Access::kWrite}});
  build.free(y);
  build.free(x);
  const Trace trace = build.finish();
  const VersionId a = trace.first_version(x), b = trace.first_version(y);
  const Nanos copied = 10_us + 1'048'576_ns;
  for (const auto& [second, end] : {std::pair{100_MiB, copied + 10_us}, std::pair{2_MiB, copied}}) {
    PlanWriter plan{trace};
    plan.reserve(0_B, 4_MiB, 2).map(100_MiB, 2_MiB, 0);
    plan.alloc(a, 0_B).run(OpId{0}).swap_out(a).drop(a).alloc(b, second).run(OpId{1}).free(b).free(a);
    RunSpec spec;
    spec.machine.d2h = {BytesPerSecond{1'000'000'000}, 0_ns};
    const Totals totals = replay(trace, spec, plan.plan());
    CHECK(totals.makespan == end);
    CHECK(totals.footprint == 4_MiB);
  }
}

TEST_CASE("mapping addresses takes time for every 2 MiB") {
  TraceBuilder build;
  build.run({.duration = 1_us}, {});
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.reserve(0_B, 6_MiB, 3).map(100_MiB, 6_MiB, 0).unmap(100_MiB, 4_MiB).run(OpId{0});
  RunSpec spec;
  spec.machine.page_map = 10_us;
  spec.machine.page_unmap = 100_us;
  CHECK(replay(trace, spec, plan.plan()).makespan == 30_us + 30_us + 200_us + 1_us);
}

}  // namespace tidepool::memory_map_test
