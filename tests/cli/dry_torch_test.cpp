// PyTorch built for CUDA, on the dry device: its own allocator, its own kernels, no GPU.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "tests/torch_python.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::dry_torch_test {

using Json = nlohmann::json;
using tests::skip;
using tests::torch_python;

TEST_CASE("a training step of PyTorch for CUDA runs without a GPU, and its allocator agrees with the model") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide"), snapshot = folder.file("snapshot.pickle"),
                    peak = folder.file("peak");
  const ProgramResult run = run_program(
      {"record", "--dry", "-o", trace, "--", python, paths::source_folder() + "/tests/dry/mlp.py", snapshot, peak});
  INFO(run.err);
  REQUIRE(run.code == 0);

  const Json audit = Json::parse(run_program({"audit", snapshot, "--json"}).out);
  CHECK(audit.at("allocations") > 100);
  CHECK(audit.at("matched") == audit.at("allocations"));
  CHECK(audit.at("segment_allocations") > 0);
  CHECK(audit.at("segment_matched") == audit.at("segment_allocations"));
  CHECK(audit.at("devices").at(0).at("peak_allocated_bytes") == std::stoll(content_of(peak)));

  // Every tensor is a buffer, and no other buffer exists: the peak is exactly PyTorch's.
  const Json info = Json::parse(run_program({"info", trace, "--json"}).out);
  CHECK(info.at("ideal_peak_bytes") == std::stoll(content_of(peak)));
  CHECK(info.at("buffers") == audit.at("allocations"));
  CHECK(info.at("kernels") > 60);
  CHECK(info.at("meta").at("time") == "estimated");
  CHECK(run_program({"simulate", trace, "--pool", "pytorch"}).code == 0);
}

TEST_CASE("a tensor that PyTorch's hook records too is only one buffer in a dry run") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide"), snapshot = folder.file("snapshot.pickle");
  const ProgramResult run =
      run_program({"record", "--dry", "--torch", "--kernels", "--keep-raw", "-o", trace, "--", python,
                   paths::source_folder() + "/tests/dry/mlp.py", snapshot, folder.file("peak")});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Json audit = Json::parse(run_program({"audit", snapshot, "--json"}).out);
  const Json info = Json::parse(run_program({"info", trace, "--json"}).out);
  CHECK(info.at("buffers") == audit.at("allocations"));
  CHECK(info.at("losses").at("dropped_records") == 0);
  CHECK(info.at("losses").at("unmatched_frees") == 0);
  CHECK(info.at("kind_bytes").at("parameter") > 0);
  CHECK(info.at("iterations") == 2);  // of three: the first step makes the optimizer's state

  // Without --kernels, the trace has the steps that PyTorch's hook recorded, with operators as ops. Its buffers have
  // the sizes of the storages, before PyTorch's allocator rounds them up.
  REQUIRE(run_program({"import", folder.file("run.raw"), "-o", folder.file("steps.tide")}).code == 0);
  const Json steps = Json::parse(run_program({"info", folder.file("steps.tide"), "--json"}).out);
  CHECK(steps.at("iterations") == 2);
  CHECK(steps.at("buffers") < info.at("buffers"));
  CHECK(steps.at("evidence").at("parameter") == 0);
  CHECK(steps.at("kind_bytes").at("parameter") < info.at("kind_bytes").at("parameter"));
}

TEST_CASE("offloading by PyTorch's compiler runs without a GPU, and its peak falls by the offloaded bytes") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const auto last_line = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"record",
                                       "--dry",
                                       "-o",
                                       folder.file("run.tide"),
                                       "--",
                                       python,
                                       paths::source_folder() + "/tests/gpu/compiled_offload.py",
                                       "--small",
                                       "--iterations",
                                       "3"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProgramResult run = run_program(arguments);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    const std::size_t begin = run.out.find('{');
    return Json::parse(run.out.substr(begin, run.out.find('}') + 1 - begin));
  };
  const Json without = last_line({}), with = last_line({"--offload"});
  CHECK(with.at("iterations") == 3);
  CHECK(with.at("offloaded_bytes") == 2 * 4096 * 4 * 64 * 4);  // two products of 4096 tokens and 4 * 64 floats
  CHECK(without.at("allocated_peak_bytes").get<std::int64_t>() - with.at("allocated_peak_bytes").get<std::int64_t>() ==
        with.at("offloaded_bytes").get<std::int64_t>());
}

TEST_CASE("a job whose backward pass releases its objects while Python ends is recorded to its end") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  for (int i = 0; i < 3; ++i) {  // without the dry device's pthread_exit(), half of the runs abort
    const ProgramResult run = run_program({"record", "--dry", "-o", folder.file("run.tide"), "--", python,
                                           paths::source_folder() + "/tests/dry/late_release.py"});
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    CHECK(run.out == "done\n");
  }
}

TEST_CASE("a plan for a dry recording is carried out without a GPU, and PyTorch's allocator peaks as planned") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("step.tide"), plan = folder.file("step.plan");
  const std::string script = paths::source_folder() + "/tests/dry/blocks.py";
  REQUIRE(run_program({"record", "--dry", "--torch", "-o", trace, "--", python, script, "cuda"}).code == 0);
  for (const std::string policy : {"dtr-eq", "lru-swap"}) {  // lru-swap also needs streams and events
    INFO(policy);
    const std::vector<std::string> simulate{"simulate", trace,     "--policy",   policy, "--capacity",
                                            "0.8x",     "--first", "--plan-out", plan};
    REQUIRE(run_program(simulate).code == 0);
    const std::vector<std::string> job{paths::program(), "run",  "--json", "--plan", plan, "--trace", trace, "--",
                                       python,           script, "cuda",   "",       "6"};
    std::vector<std::string> record{"record", "--dry", "-o", folder.file(policy + ".tide"), "--"};
    record.insert(record.end(), job.begin(), job.end());
    const ProgramResult run = run_program(record);
    INFO(run.err);
    REQUIRE(run.code == 0);
    const Json result = Json::parse(run.out.substr(run.out.find('{')));
    CHECK(result.at("deviations") == 0);
    CHECK(result.at("left_out").empty());
    CHECK(result.at("measured") > 0);
    CHECK_THAT(result.at("allocated_peak_bytes").get<double>(),
               Catch::Matchers::WithinRel(result.at("predicted_peak_bytes").get<double>(), 0.01));
  }
}

/// Records a step of a compiled job: kernels have the modules and the lines that they were compiled from.
void check_places(const std::string& inductor, const std::string& triton) {
  const ScratchFolder folder;
  const std::string trace = folder.file("step.tide");
  const ProgramResult run =
      run_program({"record", "--dry", "--torch", "-o", trace, "--", "env", "TORCHINDUCTOR_CACHE_DIR=" + inductor,
                   "TRITON_CACHE_DIR=" + triton, torch_python(), paths::source_folder() + "/tests/dry/compiled.py"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Trace step = load_trace(trace);
  std::set<std::tuple<std::string_view, std::string_view, Phase>> places;  // of kernels that the compiler has made
  for (const Op& op : step.ops())
    if (step.text(op.name).starts_with("triton_")) places.emplace(step.text(op.module), step.text(op.line), op.phase);
  CHECK(places.contains({"2", "compiled.py:24", Phase::kForward}));
  CHECK(places.contains({"2", "compiled.py:24", Phase::kBackward}));
  const auto of_kind = [&](BufferKind kind) {
    return std::ranges::count_if(step.buffers(), [&](const Buffer& buffer) { return buffer.kind == kind; });
  };
  CHECK(of_kind(BufferKind::kParameter) == 6);
  CHECK(of_kind(BufferKind::kOptimizerState) == 12);
  CHECK(of_kind(BufferKind::kActivation) > 0);
  CHECK(step.data().meta.at("ops") == "compiled");
}

TEST_CASE("a compiled job runs without a GPU and tunes nothing, and the peak of its trace is PyTorch's") {
  const std::string python = torch_python();
  if (python.empty()) return;
  if (std::system((python + " -c 'import triton' >/dev/null 2>&1").c_str()) != 0)
    return skip(python + " has no Triton, which torch.compile needs");
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  const ProgramResult run = run_program(
      {"record", "--dry", "-o", trace, "--", "env", "TORCHINDUCTOR_CACHE_DIR=" + folder.file("inductor"),
       "TRITON_CACHE_DIR=" + folder.file("triton"), python, paths::source_folder() + "/tests/dry/compiled.py"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_places(folder.file("inductor"), folder.file("triton"));
  const Json info = Json::parse(run_program({"info", trace, "--json"}).out);
  CHECK(info.at("ideal_peak_bytes") == std::stoll(run.out));
  CHECK(std::stoll(run.out) < 50'000'000);  // benchmarks would clear a cache of 100 MB
  std::map<std::string, int> launches;
  const Trace recorded = load_trace(trace);
  for (const Op& op : recorded.ops()) ++launches[std::string{recorded.text(op.name)}];
  CHECK(launches.at("doubled") == 4);  // once to see that the first configuration works, and in each of three steps
  for (std::uint32_t i = 0; i < recorded.ops().size(); ++i)
    if (recorded.text(recorded.ops()[i].name) == "doubled") {
      const auto uses = recorded.uses(OpId{i});
      REQUIRE(uses.size() == 2);
      CHECK((uses[0].access == Access::kRead && uses[1].access == Access::kWrite));
    }
  const auto fused = std::ranges::count_if(
      launches, [](const auto& launch) { return launch.first.starts_with("triton_") && launch.second == 3; });
  CHECK(fused >= 3);
}

TEST_CASE("a job that cannot be compiled is not judged, and fit says what it lacks") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string script =
      "import torch; net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).cuda(); "
      "torch.compile(net)(torch.ones(2, 8, device='cuda'))";
  const ProgramResult fit = run_program({"fit", "--device", "t4", "--", "env", "CC=/no/compiler",
                                         "TORCHINDUCTOR_CACHE_DIR=" + folder.file("inductor"),
                                         "TRITON_CACHE_DIR=" + folder.file("triton"), python, "-c", script});
  INFO(fit.err);
  CHECK_THAT(fit.out, Catch::Matchers::StartsWith("cannot tell: the job ended before a training step; "));
  CHECK_THAT(fit.err,
             ContainsSubstring(": in a dry run, torch.compile compiles the job's kernels as on a GPU; expected "
                               "Triton in the job's Python, and a C compiler (gcc, or the one that CC names)\n"));
  CHECK_THAT(fit.err, Catch::Matchers::Matches("[^]*: the job ended before a training step: "
                                               "(InductorError|TritonMissing|BackendCompilerFailed): [^]*"));
}

TEST_CASE("a job that only infers is recorded call by call and judged, and one that fails in its first step is not") {
  const std::string python = torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  const auto record = [&](const std::string& mode) {
    return run_program({"record", "--dry", "--torch", "-o", trace, "--", python,
                        paths::source_folder() + "/tests/dry/infer.py", mode});
  };
  const ProgramResult run = record("");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Trace calls = load_trace(trace);
  CHECK(calls.ideal_peak().count() == std::stoll(run.out));
  CHECK(std::ranges::count_if(calls.data().marks, [](const Mark& mark) { return mark.kind == MarkKind::kIteration; }) ==
        3);
  CHECK(std::ranges::count_if(calls.buffers(),
                              [](const Buffer& buffer) { return buffer.kind == BufferKind::kParameter; }) == 4);
  const ProgramResult fit = run_program({"fit", trace});
  CHECK(fit.out.starts_with("fits: "));
  CHECK_THAT(fit.err, ContainsSubstring(": the job ended without a training step; this is the memory without one\n"));

  CHECK(record("fail").code == 1);
  CHECK(load_trace(trace).data().meta.at("failure") == "ValueError: bad data");
  const Trace failed = load_trace(trace);
  CHECK(std::ranges::any_of(failed.ops(), [](const Op& op) { return op.phase == Phase::kBackward; }));
}

}  // namespace tidepool::dry_torch_test
