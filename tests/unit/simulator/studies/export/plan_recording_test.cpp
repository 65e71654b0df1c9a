// A simulated run, exported like a recorded one.
#include "simulator/studies/export/plan_recording.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/importing.hpp"
#include "tests/machines.hpp"
#include "tests/paths.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/export/exporter.hpp"
#include "traces/export/recording.hpp"
#include "traces/file/writer.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/torch_snapshot.hpp"
#include "traces/iteration.hpp"

namespace tidepool::plan_recording_test {

using namespace tidepool::literals;

namespace {

PlanFile plan_of(const Trace& trace, const std::string& pool, const std::string& policy, Bytes capacity) {
  PlanFile file;
  file.trace_hash = trace.hash();
  file.spec = {.pool = pool, .policy = policy, .capacity = capacity, .machine = tests::byte_per_nano()};
  const Result result = simulate(trace, file.spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  file.predicted = result.totals;
  file.plan = result.realised;
  return file;
}

Trace imported(const Recording& recording) {
  return read_torch_snapshot(Input{"plan", find_exporter("torch-snapshot").write_recording(recording)});
}

}  // namespace

TEST_CASE("the recording of a simulated run has the simulation's peak, at places that never overlap") {
  const Trace trace = tests::chain_trace(12);
  for (const auto& [pool, policy] : {std::pair{"best-fit", "none"}, std::pair{"best-fit", "lru-swap"},
                                     std::pair{"best-fit", "dtr"}, std::pair{"pytorch", "none"}}) {
    CAPTURE(pool, policy);
    const bool all = std::string{policy} == "none";
    const PlanFile file = plan_of(trace, pool, policy, all ? kNoLimit : 6000_B);
    const Recording recording = recording_of(trace, file);
    Bytes live, most;
    std::map<std::int64_t, std::int64_t> places;  // first address to end
    for (const auto* events : {&recording.existing, &recording.memory})
      for (const RecordedBlock& event : *events) {
        if (event.action == RecordedAction::kAlloc) {
          const auto next = places.upper_bound(event.address);
          CHECK((next == places.end() || next->first >= event.address + event.size.count()));
          CHECK((next == places.begin() || std::prev(next)->second <= event.address));
          places[event.address] = event.address + event.size.count();
          live += event.size;
        } else if (event.action == RecordedAction::kFree) {
          CHECK(places.erase(event.address) == 1);
          live -= event.size;
        }
        most = std::max(most, live);
      }
    CHECK(most.count() == file.predicted.peak.count());
    std::int64_t runs = 0, copies = 0;
    for (const RecordedOp& op : recording.ops) ++(op.kind == OpKind::kCopy ? copies : runs);
    CHECK(runs == static_cast<std::int64_t>(trace.ops().size()) + file.predicted.recompute_count);
    CHECK((copies > 0) == (file.predicted.swap_in + file.predicted.swap_out > Bytes{}));
    const Trace again = imported(recording);
    CHECK(again.ideal_peak() == most);
    CHECK(again.data().losses == Losses{});
  }
}

TEST_CASE("a recording has the simulation's times of copies that slow each other down") {
  // w (1000 B) is on the host. op0 writes a (1000 B), 10 ns; then a is swapped out and w is swapped in. Each copy takes
  // 1000 ns alone.
  TraceBuilder build;
  const BufferId w = build.existing({.size = 1000_B}), a = build.alloc({.size = 1000_B});
  const VersionId made = build.run({.duration = 10_ns}, {{a, Access::kWrite}})[0];
  build.run({.duration = 10_ns}, {{a}, {w}});
  const Trace trace = build.finish();
  const VersionId first = trace.first_version(w);
  PlanFile file;
  file.trace_hash = trace.hash();
  file.plan =
      tests::PlanWriter{trace}.alloc(made, 0_B).run(OpId{0}).swap_out(made).swap_in(first, 1000_B).run(OpId{1}).plan();
  const auto ends = [&](std::int64_t out_ppm, std::int64_t in_ppm) {
    file.spec = {
        .pool = "best-fit(alignment=1B)", .policy = "none", .capacity = kNoLimit, .machine = tests::byte_per_nano()};
    file.spec.machine.d2h.duplex_ppm = out_ppm;
    file.spec.machine.h2d.duplex_ppm = in_ppm;
    std::map<std::string, Nanos> found;
    const Recording recording = recording_of(trace, file);
    for (const RecordedOp& op : recording.ops)
      if (op.kind == OpKind::kCopy) {
        CHECK(op.start.count() == Approx(12).margin(2));  // the host issues one after the other, 1 ns apart
        found[recording.lanes[op.stream.index()]] = op.start + op.duration;
      }
    return found;
  };
  using Ends = std::map<std::string, Nanos>;
  CHECK(ends(1'000'000, 1'000'000) == Ends{{"d2h", 1010_ns}, {"h2d", 1010_ns}});
  CHECK(ends(500'000, 500'000) == Ends{{"d2h", 2010_ns}, {"h2d", 2010_ns}});
  CHECK(ends(1'000'000, 500'000) == Ends{{"d2h", 1010_ns}, {"h2d", 1510_ns}});  // half of w is in by 1010 ns
}

TEST_CASE("a scratch place is freed with the size of the output that it was allocated for") {
  // op0 makes a and b. a is dropped, and op0 runs again while b is resident.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4096_B}), b = build.alloc({.size = 512_B});
  const std::vector<VersionId> made = build.run({.duration = 10_ns}, {{a, Access::kWrite}, {b, Access::kWrite}});
  build.run({.duration = 10_ns}, {{a}, {b}});
  const Trace trace = build.finish();
  PlanFile file;
  file.trace_hash = trace.hash();
  file.spec = {
      .pool = "best-fit(alignment=1B)", .policy = "none", .capacity = kNoLimit, .machine = tests::byte_per_nano()};
  file.plan = tests::PlanWriter{trace}
                  .alloc(made[0], 0_B)
                  .alloc(made[1], 4096_B)
                  .run(OpId{0})
                  .drop(made[0])
                  .alloc(made[0], 0_B)
                  .scratch(made[1], 8192_B)
                  .run(OpId{0})
                  .run(OpId{1})
                  .plan();
  std::vector<std::pair<RecordedAction, Bytes>> scratch;
  for (const RecordedBlock& event : recording_of(trace, file).memory)
    if (event.address == kSimulatedBase + 8192) scratch.emplace_back(event.action, event.size);
  CHECK(scratch == std::vector{std::pair{RecordedAction::kAlloc, 512_B}, std::pair{RecordedAction::kFree, 512_B}});
}

TEST_CASE("allocations of an iteration of a plan are in this iteration of its exported database") {
  const Trace trace = tests::chain_trace(3);
  PlanFile file;
  file.trace_hash = trace.hash();
  file.spec = {
      .pool = "best-fit", .policy = "none", .capacity = kNoLimit, .machine = tests::byte_per_nano(), .iterations = 2};
  file.plan = simulate(trace, file.spec, true).realised;
  const Trace again = read_nsys(Input{"plan", find_exporter("sqlite").write_recording(recording_of(trace, file))});
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    const auto allocations = [](const Trace& in) {
      return std::count_if(in.events().begin(), in.events().end(),
                           [](const Event& step) { return step.kind == EventKind::kAlloc; });
    };
    CHECK(allocations(one_iteration(again, i)) == allocations(trace) + (i == 0 ? 1 : 0));  // x_0 is allocated once
  }
}

TEST_CASE("an exported snapshot has the mapped pages of each stream, and the audit agrees with all its addresses") {
  TraceBuilder build{{"7", "8"}};
  const auto use = [&](const char* on, Bytes size) {
    const StreamId stream = build.stream(on);
    const BufferId buffer = build.alloc({.size = size, .stream = stream});
    build.run({.stream = stream, .duration = 10_ns}, {{buffer, Access::kWrite}});
    return buffer;
  };
  use("7", 30_MiB);
  use("8", 5_MiB);
  use("8", 400_B);
  build.free(use("7", 50_MiB));
  const Trace trace = build.finish();
  for (const char* pool : {"pytorch", "pytorch-expandable", "pytorch-expandable(large_segment_size=32MiB)"}) {
    CAPTURE(pool);
    const Recording recording = recording_of(trace, plan_of(trace, pool, "none", kNoLimit));
    const TorchSnapshot snapshot = parse_torch_snapshot(find_exporter("torch-snapshot").write_recording(recording));
    const DeviceAudit audit = audit_snapshot(snapshot, recorded_config(snapshot.settings)).total();
    CHECK(audit.exact());
    CHECK(audit.matched == 4);
    std::vector<std::tuple<std::int64_t, Bytes, bool, bool>> segments;  // stream, size, small, expandable
    for (const SnapshotSegment& segment : snapshot.segments)
      segments.emplace_back(segment.stream, segment.size, segment.small, segment.expandable);
    std::sort(segments.begin(), segments.end());
    using Segments = decltype(segments);
    if (pool == std::string{"pytorch"}) {
      CHECK(snapshot.settings.conf == "");
      CHECK(segments == Segments{{7, 30_MiB, false, false},
                                 {7, 50_MiB, false, false},
                                 {8, 2_MiB, true, false},
                                 {8, 20_MiB, false, false}});
    } else if (pool == std::string{"pytorch-expandable"}) {
      CHECK(snapshot.settings.conf == "expandable_segments:True");
      CHECK(segments == Segments{{7, 80_MiB, false, true}, {8, 2_MiB, true, true}, {8, 20_MiB, false, true}});
    } else {
      CHECK(snapshot.settings.conf == "expandable_segments:True,large_segment_size_mb:32");
      CHECK(segments == Segments{{7, 96_MiB, false, true}, {8, 2_MiB, true, true}, {8, 32_MiB, false, true}});
    }
  }
}

TEST_CASE("an exported snapshot has the pages that are mapped at the end, not those that were unmapped") {
  Recording recording;
  recording.lanes = {"0"};
  const auto pages = [&](RecordedAction action, std::int64_t address, Bytes size) {
    recording.memory.push_back({action, {}, address, size, 0, StreamId{0}, "", ""});
  };
  constexpr std::int64_t kMiB = 1 << 20;
  pages(RecordedAction::kSegmentMap, 40 * kMiB, 20_MiB);
  pages(RecordedAction::kSegmentMap, 0, 40_MiB);  // with the 20 MiB above: one segment
  pages(RecordedAction::kSegmentUnmap, 20 * kMiB, 20_MiB);
  pages(RecordedAction::kSegmentMap, 60 * kMiB, 20_MiB);
  const TorchSnapshot snapshot = parse_torch_snapshot(find_exporter("torch-snapshot").write_recording(recording));
  REQUIRE(snapshot.segments.size() == 2);
  CHECK(snapshot.segments[0].address == 0);
  CHECK(snapshot.segments[0].size == 20_MiB);
  CHECK(snapshot.segments[1].address == 40 * kMiB);
  CHECK(snapshot.segments[1].size == 40_MiB);
}

TEST_CASE("the audit of PyTorch's allocator agrees with every address of an exported simulation of this allocator") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/resnet50.tide";
  const auto run = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    INFO(result.err);
    CHECK(result.code == 0);
    return result.out;
  };
  for (const auto& [pool, policy] : {std::pair{"pytorch", "none"}, std::pair{"pytorch", "dtr"},
                                     std::pair{"pytorch-expandable", "none"}, std::pair{"pytorch-expandable", "dtr"}}) {
    CAPTURE(pool, policy);
    run({"simulate", trace, "--pool", pool, "--policy", policy, "--capacity",
         policy == std::string{"none"} ? "none" : "0.8x", "--plan-out", scratch.file("run.plan"), "--json"});
    run({"export", scratch.file("run.plan"), "--trace", trace, "--to", "torch-snapshot", "-o",
         scratch.file("run.pickle")});
    const nlohmann::json audit = nlohmann::json::parse(run({"audit", scratch.file("run.pickle"), "--json"}));
    CHECK(audit["allocations"] > 900);
    CHECK(audit["matched"] == audit["allocations"]);
    CHECK(audit["segment_matched"] == audit["segment_allocations"]);
  }
}

TEST_CASE("tidepool export takes a plan with its trace") {
  const ScratchFolder scratch;
  const Trace trace = tests::chain_trace(5);
  write_file(scratch.file("run.tide"), to_trace_file(trace));
  write_plan(scratch.file("run.plan"), plan_of(trace, "pytorch", "none", kNoLimit));
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"export", scratch.file("run.plan"), "-o", scratch.file("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  for (const char* form : {"torch-snapshot", "chrome", "perfetto", "rmm", "sqlite"})
    CHECK(run({"--trace", scratch.file("run.tide"), "--to", form}).code == 0);
  CHECK(run({"--to", "chrome"}).err ==
        "tidepool: " + scratch.file("run.plan") + ": a plan; expected --trace with the trace that it is for\n");
  CHECK(run({"--trace", scratch.file("run.tide"), "--to", "csv"}).err ==
        "tidepool: " + scratch.file("run.plan") + ": --to csv: is a form of traces, and this is a plan\n");
  CHECK(run_program({"export", scratch.file("run.tide"), "--trace", "x", "--to", "rmm"}).err ==
        "tidepool: " + scratch.file("run.tide") + ": --trace x: is for plans, and this is none\n");
}

}  // namespace tidepool::plan_recording_test
