// The code that `advise` prints, run by PyTorch.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"

namespace tidepool::advise_torch_test {

using Json = nlohmann::json;

namespace {

const std::string kScript = paths::source_folder() + "/tests/dry/blocks.py";

/// The number that follows the word and a space in a job's output.
double number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word + " ");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + word.size() + 1));
}

double dry_peak(const std::string& python, const std::string& trace, const std::string& change) {
  std::vector<std::string> words{"record", "--dry", "--torch", "-o", trace, "--", python, kScript, "cuda"};
  if (!change.empty()) words.push_back(change);
  const ProgramResult run = run_program(words);
  INFO(run.err);
  REQUIRE(run.code == 0);
  return number_behind(run.out, "peak");
}

double gradients(const std::string& python, const std::string& change, const ScratchFolder& folder) {
  const std::string out = folder.file("out");
  REQUIRE(std::system(("'" + python + "' '" + kScript + "' cpu " + change + " >'" + out + "'").c_str()) == 0);
  return number_behind(content_of(out), "gradients");
}

}  // namespace

TEST_CASE("a script that is changed as advised has the advised peak, and computes the same") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  CHECK(dry_peak(python, trace, "") > 0);
  const double before = gradients(python, "", folder);
  for (const std::string kind : {"checkpoint", "selective-checkpoint", "offload", "batch"}) {
    INFO(kind);
    const Json said = Json::parse(run_program({"advise", trace, "--capacity", "0.8x", "--kinds", kind, "--json"}).out);
    REQUIRE_FALSE(said.at("changes").empty());
    const Json& change = said.at("changes").at(0);
    const std::string code = folder.file(kind + ".py");
    std::ofstream{code} << change.at("code").get<std::string>();
    const double peak = dry_peak(python, folder.file(kind + ".tide"), code);
    CHECK(std::abs(change.at("peak_bytes").get<double>() / peak - 1) < 0.02);
    if (kind == "batch")
      CHECK_THAT(gradients(python, code, folder), Catch::Matchers::WithinRel(before, 1e-4));  // sums have another order
    else
      CHECK(gradients(python, code, folder) == before);
  }
}

TEST_CASE("tidepool advise --check records the script with the best change, which it does not contain") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  dry_peak(python, trace, "");
  const auto checked = [&](const std::vector<std::string>& command) {
    std::vector<std::string> words{"advise", trace, "--capacity", "0.8x", "--kinds", "checkpoint", "--check", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return run_program(words);
  };
  const ProgramResult same = checked({python, kScript, "cuda"});
  INFO(same.err);
  CHECK(same.code == 0);
  const std::string last = same.out.substr(same.out.rfind("\nchecked: with checkpoint, the recorded step takes "));
  CHECK(std::abs(std::stod(last.substr(last.rfind(": ") + 2))) < 2);
  const ProgramResult other =
      checked({python, "-c", "import torch; torch.nn.Linear(9, 9).cuda()(torch.ones(9).cuda())"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, ContainsSubstring(": the change was not applied\n"));
  const std::string fails = fmt::format(
      "import runpy, sys; sys.argv = ['{0}', 'cuda']; runpy.run_path('{0}', run_name='__main__'); sys.exit(3)",
      kScript);
  const ProgramResult failed = checked({python, "-c", fails});
  CHECK(failed.code == 2);
  CHECK_THAT(failed.err, ContainsSubstring(": with the change, the job failed\n"));
}

}  // namespace tidepool::advise_torch_test
