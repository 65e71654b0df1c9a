// Values that decide sizes, loops and branches of PyTorch jobs, in dry runs (tests/dry/values.py).
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"

namespace tidepool::dry_values_test {

using Json = nlohmann::json;

const std::string kScript = paths::source_folder() + "/tests/dry/values.py";

struct Ran {
  ProgramResult result;
  Json fit;
};

Ran run(const std::string& python, const std::string& kind, const std::vector<std::string>& options = {}) {
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  std::vector<std::string> arguments{"record", "--dry", "--kernels", "--device", "rtx-3090", "-o", trace};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (const std::string& each : {std::string{"--"}, python, kScript, kind}) arguments.push_back(each);
  Ran ran{run_program(arguments), {}};
  ran.fit = Json::parse(run_program({"fit", trace, "--device", "rtx-3090", "--json"}).out);
  return ran;
}

/// A line of `text` for each of the three steps.
std::string thrice(const std::string& text) { return text + "\n" + text + "\n" + text + "\n"; }

TEST_CASE("values that a job made on the host, or from its numbers, are known in a dry run") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ProgramResult known = run(python, "known").result;
  INFO(known.err);
  CHECK(known.code == 0);
  CHECK(run(python, "generate").result.out.starts_with("24\n"));
}

TEST_CASE("a mask of known integers keeps in a dry run what it keeps on a device, and nothing is assumed") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const Ran edges = run(python, "edges", {"--torch"});
  INFO(edges.result.err);
  CHECK(edges.result.out.starts_with(thrice("9887")));
  CHECK(edges.fit.at("sizes_from") == "recorded");
  CHECK(run(python, "heads", {"--torch"}).fit.at("sizes_from") == "recorded");
}

TEST_CASE("a size that follows from unknown values is assumed, and a fit that rests on it is not for certain") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const Ran masked = run(python, "masked", {"--torch"});
  INFO(masked.result.err);
  CHECK(masked.result.out.starts_with(thrice("6400")));
  CHECK(masked.fit.at("sizes_from") == "assumed");
  CHECK_FALSE(masked.fit.at("certain").get<bool>());
  const std::string script = content_of(kScript);
  const auto line =
      std::count(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(script.find("> 0].numel()")), '\n');
  CHECK_THAT(masked.fit.dump(), ContainsSubstring("values.py:" + std::to_string(line + 1) + " (aten::nonzero)"));
}

TEST_CASE("a check of values that a dry run does not know holds") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ProgramResult checked = run(python, "checked").result;
  INFO(checked.err);
  CHECK(checked.code == 0);
}

TEST_CASE("zeros of the script are unknown as soon as an optimizer has updated them") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  CHECK(run(python, "gates").result.out.starts_with("0\n100\n100\n"));
}

TEST_CASE("what a kernel of another library may have written is unknown") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  CHECK(run(python, "kernel").result.out.starts_with("300\n"));
}

TEST_CASE("experts are chosen as --routing says, and each that is hit runs") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  CHECK(run(python, "experts").result.out.starts_with(thrice("100 100 100 100 100 100 100 100")));
  CHECK(run(python, "experts", {"--routing", "worst"}).result.out.starts_with(thrice("397 397 1 1 1 1 1 1")));
  const std::string zipf = run(python, "experts", {"--routing", "zipf"}).result.out;
  CHECK(std::stoi(zipf) > 100);
  const ScratchFolder folder;
  std::ofstream{folder.file("shares")} << "40 0 10 10 10 10 10\n10\n";  // 400 tokens choose two experts each
  const std::string given = run(python, "experts", {"--routing", folder.file("shares")}).result.out;
  CHECK(given.starts_with(thrice("320 80 80 79 81 80 80")));
}

TEST_CASE("fit of a command records the other extreme of choices, and does without it if that fails") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const auto fit = [&](const std::string& kind, const std::string& file) {
    const ProgramResult ran = run_program({"fit", "--device", "rtx-3090", "--json", "--", python, kScript, kind, file});
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    return Json::parse(ran.out);
  };
  const ScratchFolder folder;
  const Json experts = fit("experts", "");
  CHECK(experts.at("worst_routing_bytes") >= experts.at("predicted_bytes"));  // all experts have tokens, and so state
  CHECK(experts.at("sizes_from") == "assumed");
  const Json once = fit("once", folder.file("ran"));
  CHECK_FALSE(once.contains("worst_routing_bytes"));
  CHECK(once.at("sizes_from") == "assumed");
  CHECK_FALSE(fit("heads", "").contains("worst_routing_bytes"));
}

}  // namespace tidepool::dry_values_test
