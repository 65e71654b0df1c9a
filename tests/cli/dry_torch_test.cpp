// PyTorch built for CUDA, on the dry device: its own allocator, its own kernels, no GPU.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"

namespace tidepool::dry_torch_test {

using Json = nlohmann::json;
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

}  // namespace tidepool::dry_torch_test
