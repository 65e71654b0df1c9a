#include <nlohmann/json.hpp>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::validate_test {

using tests::PlanWriter;

namespace {

/// op0 writes a | op1 writes b | op2 reads a and b, writes c: 1 ms each, 4 KiB each.
struct Files {
  VersionId a, b, c;
  Trace trace = make();
  ScratchFolder folder;
  std::string trace_path = folder.file("run.jsonl"), plan_path = folder.file("run.plan");

  Trace make() {
    TraceBuilder build;
    const BufferId first = build.alloc({.size = 4096_B}), second = build.alloc({.size = 4096_B});
    const BufferId third = build.alloc({.size = 4096_B});
    a = build.run({.duration = 1_ms}, {{first, Access::kWrite}})[0];
    b = build.run({.duration = 1_ms}, {{second, Access::kWrite}})[0];
    c = build.run({.duration = 1_ms}, {{first}, {second}, {third, Access::kWrite}})[2];
    return build.finish();
  }

  /// A plan in which a lies at 0 and b at `b_at`. b is swapped out and in again: 4096 bytes each way.
  /// If b overlaps a, the plan predicts nothing.
  PlanFile plan(Bytes b_at) const {
    PlanWriter writer{trace};
    writer.alloc(a, 0_B).run(OpId{0}).alloc(b, b_at).run(OpId{1}).swap_out(b).drop(b).swap_in(b, b_at);
    writer.alloc(c, 16_KiB).run(OpId{2});
    PlanFile file{trace.hash(), {}, {}, writer.plan()};
    file.spec.capacity = kNoLimit;
    file.spec.machine = find_machine("titan-x-pcie3");
    if (b_at >= 4096_B) file.predicted = replay(trace, file.spec, file.plan);
    return file;
  }

  void write(const PlanFile& file) const {
    write_file(trace_path, to_jsonl(trace));
    write_plan(plan_path, file);
  }

  ProgramResult validate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"validate", plan_path, "--trace", trace_path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
};

/// Makes programs find the fake in the place of NVIDIA's driver, as long as the object exists.
class WithFakeDriver {
 public:
  explicit WithFakeDriver(const std::string& settings) {
    setenv("LD_LIBRARY_PATH", tests::fake_cuda_folder().c_str(), 1);
    setenv("TIDEPOOL_FAKE", settings.c_str(), 1);
  }
  ~WithFakeDriver() { unsetenv("LD_LIBRARY_PATH"); }
};

}  // namespace

TEST_CASE("validate runs a plan on the host and prints the result") {
  const Files files;
  files.write(files.plan(8192_B));
  const ProgramResult result = files.validate({"--backend", "host", "--json", "--detail"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(result.err.empty());
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["backend"] == "host");
  CHECK(json["outcome"] == "ok");
  CHECK(json["trace_hash"] == files.trace.hash());
  CHECK(json["corrupt_bytes"] == 0);
  CHECK(json["predicted_peak_bytes"] == 12288);
  CHECK(json["measured_peak_bytes"] == 12288);
  CHECK(json["predicted_ns"] == files.plan(8192_B).predicted.makespan.count());
  CHECK_FALSE(json.contains("measured_ns"));
  CHECK_FALSE(json.contains("error"));
  CHECK(json["read_bytes"] == 2 * 4096 + 3 * 4096);  // op 2 reads a and b; a, b and c are outputs
  CHECK(json["lanes"].size() == 4);
  REQUIRE(json["transfers"].size() == 2);
  CHECK(json["transfers"][0]["direction"] == "d2h");
  CHECK(json["transfers"][0]["bytes"] == 4096);

  CHECK_THAT(files.validate().out, ContainsSubstring("outcome         ok\n"));
}

TEST_CASE("validate measures time if --time-scale is given") {
  const Files files;
  files.write(files.plan(8192_B));
  const ProgramResult result = files.validate({"--json", "--time-scale", "2"});
  REQUIRE(result.code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["measured_ns"].get<std::int64_t>() >= json["predicted_ns"].get<std::int64_t>());  // no op starts early
  CHECK(json["error"].get<double>() >= 0);
  CHECK(json["wall_ns"].get<std::int64_t>() >= 2 * json["predicted_ns"].get<std::int64_t>());
}

TEST_CASE("validate allocates memory for content only if content is compared") {
  const Files files;
  files.write(files.plan(8192_B));
  const ProgramResult timed = files.validate({"--json", "--time-scale", "1", "--no-content", "--arena", "1B"});
  REQUIRE(timed.code == 0);
  const auto json = nlohmann::json::parse(timed.out);
  CHECK(json["read_bytes"] == 0);
  CHECK(json["measured_ns"].get<std::int64_t>() >= json["predicted_ns"].get<std::int64_t>());

  const ProgramResult both = files.validate({"--json", "--time-scale", "1", "--arena", "64B"});
  REQUIRE(both.code == 0);
  CHECK(nlohmann::json::parse(both.out)["unit_bytes"] == 4096);
  const ProgramResult too_small = files.validate({"--time-scale", "1", "--arena", "8B"});
  CHECK(too_small.code == 2);
  CHECK(too_small.err ==
        "tidepool: the plan needs 32 B of memory, a word for each of the 4 pieces into which its places divide it; "
        "expected at most 8 B (--arena)\n");
}

TEST_CASE("validate fails when bytes are wrong, a plan cannot be executed or costs something else") {
  const Files files;
  files.write(files.plan(2048_B));  // over the last half of a
  const ProgramResult corrupt = files.validate({"--json"});
  CHECK(corrupt.code == 1);
  const auto json = nlohmann::json::parse(corrupt.out);
  CHECK(json["outcome"] == "corrupt");
  CHECK(json["corrupt_bytes"] == 2048 + 2048 + 4096);  // a for op 2 and as an output, and c made from it
  CHECK_THAT(json["message"].get<std::string>(),
             ContainsSubstring("run op 2 before op 2: reads version 0 (buffer 0): byte 2048 is wrong; expected "));

  PlanFile early = files.plan(8192_B);
  std::swap(early.plan.actions[0], early.plan.actions[1]);
  files.write(early);
  const ProgramResult refused = files.validate({"--json"});
  CHECK(refused.code == 1);
  CHECK(nlohmann::json::parse(refused.out)["outcome"] == "error");
  CHECK(nlohmann::json::parse(refused.out)["message"] ==
        "run op 0 before op 0: version 0 has no place to be written to");

  PlanFile boast = files.plan(8192_B);
  const std::int64_t makespan = boast.predicted.makespan.count();
  boast.predicted.makespan = 1_ms;
  files.write(boast);
  const ProgramResult wrong = files.validate();
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.out, ContainsSubstring("its actions do not cost what the plan predicts: makespan " +
                                          std::to_string(makespan) + " ns, not 1000000 ns\n"));
  boast.predicted.peak = 4096_B;
  files.write(boast);
  CHECK_THAT(files.validate().out, ContainsSubstring(" ns, not 1000000 ns; peak 12288 B, not 4096 B\n"));
}

TEST_CASE("validate refuses places that no device has") {
  const Files files;
  const auto message = [&](const PlanFile& file) {
    files.write(file);
    const ProgramResult refused = files.validate({"--json"});
    CHECK(refused.code == 1);
    return nlohmann::json::parse(refused.out)["message"].get<std::string>();
  };
  PlanFile odd = files.plan(8193_B);
  CHECK(message(odd) == "alloc version 1 before op 1: it begins at 8193 B; expected a multiple of 256 B");
  odd.spec.pool = "best-fit(alignment=16B)";
  CHECK(message(odd) == "alloc version 1 before op 1: it begins at 8193 B; expected a multiple of 16 B");
  odd.spec.pool = "smartpool";  // its places begin at any byte, as in its authors' code
  files.write(odd);
  CHECK(files.validate().code == 0);
  files.write(files.plan(8448_B));
  CHECK(files.validate().code == 0);
}

TEST_CASE("validate refuses an action that names another op than the next one") {
  const Files files;
  PlanFile file = files.plan(8192_B);
  REQUIRE(file.plan.actions[2].before == OpId{1});
  file.plan.actions[2].before = OpId{2};
  files.write(file);
  const ProgramResult refused = files.validate({"--json"});
  CHECK(refused.code == 1);
  CHECK(nlohmann::json::parse(refused.out)["message"] == "alloc version 1 before op 2: op 1 is the next one");
}

TEST_CASE("validate refuses a plan for another trace and a backend that is not there") {
  const Files files;
  PlanFile other = files.plan(8192_B);
  other.trace_hash = "0123456789abcdef";
  files.write(other);
  const ProgramResult mismatch = files.validate();
  CHECK(mismatch.code == 2);
  CHECK(mismatch.err == "tidepool: " + files.plan_path +
                            ":1: made for trace 0123456789abcdef; expected the trace given, " + files.trace.hash() +
                            "\n");
  const ProgramResult quantum = files.validate({"--backend", "quantum"});
  CHECK(quantum.code == 2);
  CHECK(quantum.err == "tidepool: --backend: 'quantum' is not a backend; expected host or cuda\n");
  files.write(files.plan(8192_B));
  const ProgramResult arena = files.validate({"--arena", "12"});
  CHECK(arena.code == 2);
  CHECK_THAT(arena.err, ContainsSubstring("tidepool: --arena: '12' is not a size; "));
}

TEST_CASE("validate runs a plan on a device, and compares its time with the prediction") {
  const Files files;
  PlanFile file = files.plan(8192_B);
  // The copies of the fake: 10 us of latency, and 12 bytes per ns.
  file.spec.machine.h2d = file.spec.machine.d2h = {BytesPerSecond{12'000'000'000}, 10_us};
  file.predicted = replay(files.trace, file.spec, file.plan);
  files.write(file);
  const WithFakeDriver device{"seed=2"};
  const ProgramResult result = files.validate({"--backend", "cuda", "--json", "--detail", "--repeat", "3"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["backend"] == "cuda");
  CHECK(json["device"] == "fake, driver for CUDA 13.0");
  CHECK(json["corrupt_bytes"] == 0);
  CHECK(json["read_bytes"] == 5 * 4096);
  CHECK(json["repeats"] == 3);
  CHECK(std::abs(json["error"].get<double>()) < 0.001);
  CHECK(json["predicted_stall_ns"] == 2 * 10'342);  // no op runs while b is swapped out and in
  CHECK(std::abs(json["measured_stall_ns"].get<std::int64_t>() - 2 * 10'341) < 500);  // spins may end 100 ns late
  CHECK(json["copy_error"].get<double>() < 0.001);
  CHECK(json["worst"]["what"].is_string());
  REQUIRE(json["lanes"].size() == 4);
  CHECK(json["lanes"][1]["lane"] == "d2h");
  CHECK(json["lanes"][1]["predicted_busy_ns"] == 10'342);
  REQUIRE(json["transfers"].size() == 2);
  CHECK(std::abs(json["transfers"][1]["measured_ns"].get<std::int64_t>() - 10'342) < 10);
  CHECK_THAT(files.validate({"--backend", "cuda", "--graph", "--repeat", "2"}).out,
             ContainsSubstring(", the median of 2 runs from "));
}

namespace {

/// The output of `validate --json` for a plan of the policy. On the device, 1.5 us pass before each kernel. The host
/// takes 2.5 us for a command and 20 us to launch a graph. A graph takes 2 ms to be uploaded.
/// @param policy   options of `simulate`
/// @param more     further settings of the fake, each after a comma
/// @param options  further options of `validate`
nlohmann::json validated_with_gaps(const Trace& trace, const std::vector<std::string>& policy, bool graph,
                                   const std::string& more = "", const std::vector<std::string>& options = {}) {
  const ScratchFolder folder;
  const std::string path = folder.file("ops.jsonl"), plan = folder.file("ops.plan");
  write_file(path, to_jsonl(trace));
  std::vector<std::string> simulate{"simulate", path, "--first", "--plan-out", plan};
  simulate.insert(simulate.end(), policy.begin(), policy.end());
  const ProgramResult planned = run_program(simulate);
  INFO(planned.out << planned.err);
  REQUIRE(planned.code == 0);
  const WithFakeDriver device{"seed=3,gap=1500,submit=2500,upload=2000000,launch=20000" + more};
  std::vector<std::string> validate{"validate", plan, "--trace", path, "--backend", "cuda", "--json"};
  if (graph) validate.push_back("--graph");
  validate.insert(validate.end(), options.begin(), options.end());
  const ProgramResult result = run_program(validate);
  INFO(result.out << result.err);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(result.out);
}

}  // namespace

TEST_CASE("gaps between kernels, the host's launches and a graph's upload are no part of the time") {
  TraceBuilder build;  // a hundred ops of 10 us, one after the other
  for (int i = 0; i < 100; ++i) {
    const BufferId buffer = build.alloc({.size = 4096_B});
    build.run({.duration = 10_us}, {{buffer, Access::kWrite}});
  }
  const Trace trace = build.finish();
  for (const bool graph : {false, true}) {
    const auto json = validated_with_gaps(trace, {"--policy", "none"}, graph);
    CHECK(json["predicted_ns"] == 1'000'000);
    // The gaps before the last commands remain; without a graph, so does the host's time for the first ones.
    CHECK(std::abs(json["error"].get<double>()) < (graph ? 0.005 : 0.02));
  }
}

TEST_CASE("the ticks of a device's timer do not add up") {
  TraceBuilder build;  // a hundred ops of 10.3 us, where the timer ticks every us
  for (int i = 0; i < 100; ++i) {
    const BufferId buffer = build.alloc({.size = 4096_B});
    build.run({.duration = 10'300_ns}, {{buffer, Access::kWrite}});
  }
  const auto json = validated_with_gaps(build.finish(), {"--policy", "none"}, true, ",tick=1000");
  CHECK(json["predicted_ns"] == 1'030'000);
  CHECK(std::abs(json["error"].get<double>()) < 0.005);
}

TEST_CASE("gaps before kernels that wait for other streams do not add up either") {
  TraceBuilder build;  // a hundred ops of 40 us on alternating streams; each waits for the previous one
  const StreamId side = build.stream("1");
  BufferId last = build.alloc({.size = 4096_B});
  build.run({.duration = 40_us}, {{last, Access::kWrite}});
  for (int i = 1; i < 100; ++i) {
    const BufferId next = build.alloc({.size = 4096_B});
    Op op{.duration = 40_us};
    if (i % 2 != 0) op.stream = side;
    build.run(op, {{last, Access::kRead}, {next, Access::kWrite}});
    last = next;
  }
  const Trace trace = build.finish();
  for (const bool graph : {false, true}) {
    const auto json = validated_with_gaps(trace, {"--policy", "none"}, graph);
    CHECK(json["predicted_ns"] == 4'000'000);
    CHECK(std::abs(json["error"].get<double>()) < 0.005);
  }
}

TEST_CASE("gaps before kernels that wait for copies do not add up, if the copies have ended before") {
  // Ops of 100 us write forty buffers, and read them again in the same order. Half of the buffers fit.
  TraceBuilder build;
  std::vector<BufferId> buffers;
  for (int i = 0; i < 40; ++i) {
    buffers.push_back(build.alloc({.size = 4096_B}));
    build.run({.duration = 100_us}, {{buffers.back(), Access::kWrite}});
  }
  for (const BufferId buffer : buffers) {
    build.run({.duration = 100_us}, {{buffer, Access::kRead}});
    build.free(buffer);
  }
  const Trace trace = build.finish();
  for (const bool graph : {false, true}) {
    const auto json = validated_with_gaps(trace, {"--policy", "tide(least=1KiB)", "--capacity", "0.6x"}, graph);
    CHECK(json["copy_error"].is_number());
    CHECK(json["predicted_stall_ns"] == 0);
    CHECK(std::abs(json["error"].get<double>()) < 0.002);
  }
}

namespace {

/// Ops of 200 us write eight buffers of 1 MiB, and read them again in the same order. If half of the buffers fit,
/// copies run beside the kernels nearly all the time.
Trace large_buffers() {
  TraceBuilder build;
  std::vector<BufferId> buffers;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(build.alloc({.size = 1_MiB}));
    build.run({.duration = 200_us}, {{buffers.back(), Access::kWrite}});
  }
  for (const BufferId buffer : buffers) {
    build.run({.duration = 200_us}, {{buffer, Access::kRead}});
    build.free(buffer);
  }
  return build.finish();
}

}  // namespace

TEST_CASE("the time that is predicted for a device has no slow-down by copies and no pinning") {
  const ScratchFolder folder;
  Machine machine;
  machine.name = "slow", machine.source = "a test";
  machine.h2d.slowdown_ppm = machine.d2h.slowdown_ppm = 500'000;
  machine.host.pin_latency = 50_us;
  machine.host.pin_rate = BytesPerSecond{1'000'000'000};
  write_file(folder.file("slow.json"), machine_file(machine));
  const auto json = validated_with_gaps(
      large_buffers(), {"--policy", "tide(with=swap)", "--capacity", "0.6x", "--machine", folder.file("slow.json")},
      true);
  CHECK(json["copy_error"].is_number());
  CHECK(json["predicted_ns"].get<std::int64_t>() - json["predicted_stall_ns"].get<std::int64_t>() == 16 * 200'000);
  CHECK(std::abs(json["error"].get<double>()) < 0.01);
}

TEST_CASE("the runs of a plan on a device allocate its memory once") {
  // Only two large allocations are possible: the arena and the pinned memory. The run that compares bytes and the five
  // that measure time must share them.
  const auto json = validated_with_gaps(large_buffers(), {"--policy", "autoswap", "--capacity", "0.6x"}, false,
                                        ",large=2", {"--repeat", "5"});
  CHECK(json["outcome"] == "ok");
  CHECK(json["copy_error"].is_number());
  CHECK(json["repeats"] == 5);
}

TEST_CASE("validate reports wrong bytes on a device, and resources that it lacks") {
  const Files files;
  files.write(files.plan(2048_B));
  {
    const WithFakeDriver device{"seed=1"};
    const ProgramResult corrupt = files.validate({"--backend", "cuda", "--json"});
    CHECK(corrupt.code == 1);
    CHECK(nlohmann::json::parse(corrupt.out)["corrupt_bytes"] == 2048 + 2048 + 4096);
  }
  files.write(files.plan(8192_B));
  {
    const WithFakeDriver device{"memory=10000"};
    const ProgramResult full = files.validate({"--backend", "cuda"});
    CHECK(full.code == 1);
    CHECK_THAT(full.out,
               ContainsSubstring("outcome         out_of_memory\nbecause         the device has no 12 KiB for "
                                 "the arena; 9.766 KiB of 9.766 KiB are free: cuMemAlloc_v2: "
                                 "CUDA_ERROR_OUT_OF_MEMORY (out of memory)\n"));
  }
  {
    const WithFakeDriver device{"die=12"};
    const ProgramResult lost = files.validate({"--backend", "cuda"});
    CHECK(lost.code == 1);
    CHECK_THAT(lost.out, ContainsSubstring("outcome         device_error\nbecause         after "));
  }
  const WithFakeDriver device{"devices=0"};
  const ProgramResult none = files.validate({"--backend", "cuda"});
  CHECK(none.code == 2);
  CHECK(none.err == "tidepool: --backend: cuda: there is no device 0; the driver knows 0\n");
  for (const std::string scale : {"-1", "inf", "nan", "1e+300", "1e-310"}) {
    const ProgramResult refused = files.validate({"--time-scale", scale});
    CHECK(refused.code == 2);
    CHECK(refused.err == "tidepool: --time-scale: " + scale + "; expected a number from 1e-6 to 1e6, or 0\n");
  }
  const ProgramResult move = files.validate({"--move"});
  CHECK(move.code == 2);
  CHECK(move.err ==
        "tidepool: --move: expected --backend host and --time-scale 1: bytes cannot be moved slower than "
        "they are\n");
}

TEST_CASE("validate refuses options that its backend would ignore, and those that leave nothing to compare") {
  const Files files;
  files.write(files.plan(8192_B));
  const auto said = [&](const std::vector<std::string>& options) {
    const ProgramResult refused = files.validate(options);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    return refused.err;
  };
  CHECK(said({"--graph"}) == "tidepool: --graph: expected --backend cuda\n");
  CHECK(said({"--device", "3"}) == "tidepool: --device: expected --backend cuda\n");
  CHECK(said({"--backend", "cuda", "--time-scale", "1"}) == "tidepool: --time-scale: expected --backend host\n");
  CHECK(said({"--backend", "cuda", "--no-threads"}) == "tidepool: --no-threads: expected --backend host\n");
  CHECK(said({"--repeat", "5"}) == "tidepool: --repeat: applies to --time-scale, which is not given; expected both\n");
  const std::string nothing = "tidepool: --no-content: no time is measured, so nothing would be compared; expected ";
  CHECK(said({"--no-content"}) == nothing + "--time-scale above 0, and --repeat 1 or more\n");
  CHECK(said({"--no-content", "--time-scale", "1", "--repeat", "0"}) ==
        nothing + "--time-scale above 0, and --repeat 1 or more\n");
  CHECK(said({"--backend", "cuda", "--no-content", "--repeat", "0"}) == nothing + "--repeat 1 or more\n");
}

TEST_CASE("validate stores its measurements with the run of the plan") {
  const Files files;
  files.write(files.plan(8192_B));
  const std::string results = files.folder.file("r.sqlite");
  CHECK(files.validate({"--results", results}).err ==
        "tidepool: " + results + ": no such file; expected a database that sweep wrote\n");
  { const Database made{results}; }
  REQUIRE(files.validate({"--results", results, "--time-scale", "1", "--repeat", "2"}).code == 0);
  const Database database{results, Database::Open::kExisting};
  const std::vector<MeasuredRun> runs = database.measurements();
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].repeat == 2);
  CHECK(runs[1].backend == "host");
  CHECK(runs[1].outcome == "ok");
  CHECK(runs[1].corrupt == 0_B);
  CHECK(runs[1].peak == 12'288_B);
  CHECK(*runs[1].measured >= files.plan(8192_B).predicted.makespan);
  CHECK(runs[1].run_key == run_key(files.trace, files.plan(8192_B).spec));
}

}  // namespace tidepool::validate_test
