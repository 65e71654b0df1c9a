// What was measured on an NVIDIA H200 (traces/gpu/h200), against the README.md of that folder and against dry runs of
// the same jobs.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>
#include <vector>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::h200_test {

using namespace tidepool::literals;

namespace {

const std::string kFolder = paths::source_folder() + "/traces/gpu/h200/";

std::string content(const std::string& name) {
  std::ifstream file{kFolder + name};
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The losses that a job printed, in hexadecimal, from lines such as
/// "iteration 0: loss 10.978249 0x1.5f4dd00000000p+3, 763.0 ms".
std::vector<std::string> losses(const std::string& name) {
  std::vector<std::string> found;
  std::istringstream lines{content(name)};
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find("0x"); at != std::string::npos) found.push_back(line.substr(at, line.find(',') - at));
  return found;
}

using Uses = std::vector<std::pair<Access, Bytes>>;
using Described = std::tuple<std::string_view, Phase, std::string_view, std::string_view, Uses>;

/// An op as its operator's schema describes it: name, phase, module, line, and the access and size of each buffer.
Described described(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  Uses uses;
  for (const Use& use : trace.uses(id))
    if (use.evidence == Evidence::kSchema)
      uses.emplace_back(use.access, trace.buffer(trace.version(use.out.valid() ? use.out : use.in).buffer).size);
  return {trace.text(op.name), op.phase, trace.text(op.module), trace.text(op.line), uses};
}

}  // namespace

TEST_CASE("a dry run records the steps of an H200, operator by operator") {
  for (const std::string name : {"gpt2", "resnet50", "llama"}) {
    INFO(name);
    const Trace gpu = load_trace(kFolder + name + ".tide"), dry = load_trace(kFolder + "dry-" + name + ".tide");
    REQUIRE(gpu.ops().size() == dry.ops().size());
    std::size_t different = 0;
    for (std::uint32_t i = 0; i < gpu.ops().size(); ++i)
      different += described(gpu, OpId{i}) != described(dry, OpId{i});
    CHECK(different == 0);
    // A dry run lacks the memory that libraries allocate for themselves: up to 64 MiB of cuBLAS.
    CHECK(gpu.ideal_peak() > dry.ideal_peak());
    CHECK(gpu.ideal_peak() - dry.ideal_peak() < 65_MiB);
  }
}

TEST_CASE("the plans that an H200 executed have the errors that the README of its folder gives") {
  std::map<std::string, std::vector<double>> errors;
  std::istringstream lines{content("plans.jsonl")};
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    INFO(row["run"]);
    const auto& result = row["result"];
    CHECK(result["outcome"] == "ok");
    CHECK(result["corrupt_bytes"] == 0);
    CHECK(result["measured_peak_bytes"] == result["predicted_peak_bytes"]);
    errors[row["options"]].push_back(std::abs(result["error"].get<double>()));
  }
  const std::string page = content("README.md");
  for (auto& [options, values] : errors) {
    std::sort(values.begin(), values.end());
    REQUIRE(values.size() == 20);
    const std::string row =
        fmt::format("| {} | 20 | {:.2f} % | {:.2f} % |", options.empty() ? "by streams" : "as a CUDA graph",
                    50 * (values[9] + values[10]), 100 * values[19]);
    CHECK_THAT(page, Catch::Matchers::Contains(row));
  }
}

TEST_CASE("a live job on an H200 had the same losses under every plan, in 0.6 to 1.3 % less memory than predicted") {
  const std::vector<std::string> alone = losses("losses-alone.txt");
  CHECK(alone.size() == 8);
  for (const std::string name : {"live", "live-tide-remat", "live-autoswap", "live-capuchin"}) {
    INFO(name);
    CHECK(losses("losses-" + name + ".txt") == alone);
    const auto report = nlohmann::json::parse(content(name + ".json"));
    const double error = report["measured_peak_bytes"].get<double>() / report["predicted_peak_bytes"].get<double>() - 1;
    CHECK(error < -0.006);
    CHECK(error > -0.013);
  }
}

TEST_CASE("dry runs have the peaks of offloading jobs on an H200, to the byte") {
  for (const std::string name : {"offload", "offload--offload", "published", "published--offload"}) {
    INFO(name);
    const auto last = [&](const std::string& file) {
      const std::string text = content(file);
      return nlohmann::json::parse(text.substr(text.rfind("\n{") + 1));
    };
    CHECK(last(name + "-dry.txt")["allocated_peak_bytes"] == last(name + ".txt")["allocated_peak_bytes"]);
  }
}

}  // namespace tidepool::h200_test
