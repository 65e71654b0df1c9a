#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool::advise_test {

using Json = nlohmann::json;

namespace {

const std::string kSample = paths::source_folder() + "/traces/samples/gpt2.tide";

Json changes_of(const std::string& capacity, const std::string& kinds = "checkpoint") {
  return Json::parse(run_program({"advise", kSample, "--capacity", capacity, "--kinds", kinds, "--json"}).out);
}

}  // namespace

TEST_CASE("tidepool advise names modules to checkpoint that make a step fit, the fastest change first") {
  const Json json = changes_of("0.6x");
  CHECK(json.at("base_peak_bytes") == 15103507656);
  CHECK(json.at("capacity_bytes") == 9062104593);
  REQUIRE_FALSE(json.at("changes").empty());
  double last = 1;
  for (const Json& change : json.at("changes")) {
    CHECK(change.at("kind") == "checkpoint");
    CHECK(change.at("fits") == true);
    CHECK(change.at("peak_bytes") <= json.at("capacity_bytes"));
    CHECK(change.at("allocated_bytes") >= change.at("peak_bytes"));
    CHECK(change.at("allocated_bytes") < json.at("base_allocated_bytes"));
    CHECK(change.at("overhead_ratio") >= last);
    last = change.at("overhead_ratio");
    CHECK(change.at("gap") >= 0);
    for (const Json& module : change.at("modules"))
      CHECK_THAT(change.at("code").get<std::string>(), ContainsSubstring("\"" + module.get<std::string>() + "\""));
  }
}

TEST_CASE("tidepool advise names modules to offload, with bytes and time of their copies") {
  const Json changes = changes_of("0.9x", "offload").at("changes");
  REQUIRE_FALSE(changes.empty());
  for (const Json& change : changes) {
    CHECK(change.at("kind") == "offload");
    CHECK(change.at("fits") == true);
    CHECK(change.at("copied_bytes") > 0);
    CHECK(change.at("overhead_ratio") > 1);
    CHECK(change.at("gap") >= 0);
  }
  const ProgramResult result = run_program({"advise", kSample, "--capacity", "0.9x", "--kinds", "offload"});
  CHECK_THAT(result.out, ContainsSubstring(" to the host and back; no plan of this kind takes less than "));
}

TEST_CASE("tidepool advise --apply pytorch prints the code of the best change alone") {
  const ProgramResult result = run_program({"advise", kSample, "--capacity", "0.6x", "--apply", "pytorch"});
  CHECK(result.code == 0);
  CHECK(result.out == changes_of("0.6x", "checkpoint,offload").at("changes").at(0).at("code"));
}

TEST_CASE("a plan that tidepool advise proposes is the one that its commands make") {
  const ScratchFolder folder;
  const std::string policy = GENERATE("dtr-eq", "lru-swap");  // copies of lru-swap take less time in the steady state
  const Json change =
      Json::parse(run_program({"advise", kSample, "--capacity", "0.9x", "--plans", policy, "--json"}).out);
  const auto is_plan = [](const Json& one) { return one.at("kind") == "plan"; };
  const Json& changes = change.at("changes");
  const auto plan = std::find_if(changes.begin(), changes.end(), is_plan);
  REQUIRE(plan != changes.end());
  CHECK(plan->at("code") == "tidepool simulate '" + kSample + "' --pool 'best-fit' --policy '" + policy +
                                "' --capacity 13593156890B --machine 'a100-pcie4' --first --plan-out run.plan\n"
                                "tidepool run --plan run.plan --trace '" +
                                kSample + "' -- COMMAND\n");
  const Json run = Json::parse(
      run_program({"simulate", kSample, "--pool", "best-fit", "--policy", policy, "--capacity", "13593156890B",
                   "--machine", "a100-pcie4", "--first", "--plan-out", folder.file("run.plan"), "--json"})
          .out);
  const ProgramResult live = run_program(
      {"run", "--plan", folder.file("run.plan"), "--trace", kSample, "--program-out", folder.file("program.json")});
  CHECK(live.code == 0);
  CHECK(run.at("peak_bytes") == plan->at("peak_bytes"));
  CHECK(run.at("overhead_ratio") == plan->at("overhead_ratio"));
}

TEST_CASE("tidepool advise takes policies with several options, and has no live command for a plan of kernels") {
  const ScratchFolder folder;
  std::string text = run_program({"export", kSample, "--to", "jsonl"}).out;
  for (std::size_t at = text.find("aten::"); at != text.npos; at = text.find("aten::", at))
    text.replace(at, 6, "kernel_");
  const std::string path = folder.file("kernels.jsonl");
  std::ofstream{path} << text;
  const ProgramResult result = run_program({"advise", path, "--capacity", "0.9x", "--plans", "tide-remat(effort=1)"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("--policy 'tide-remat(effort=1)'"));
  CHECK_THAT(result.out, !ContainsSubstring("tidepool run"));
}

TEST_CASE("tidepool advise shows the nearest changes if nothing fits, and ends with 1") {
  const ProgramResult result = run_program({"advise", kSample, "--capacity", "0.1x", "--kinds", "checkpoint"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("wanted\nno change fits; these come nearest\n\n1. checkpoint "));
}

TEST_CASE("tidepool advise marks each change that does not fit beside others that fit") {
  const std::vector<std::string> arguments{"advise", kSample, "--capacity", "0.6x", "--plans", "none"};
  const std::string out = run_program(arguments).out;
  const Json json = changes_of("0.6x", "checkpoint,selective-checkpoint,early-updates,offload,budget,batch,allocator");
  CHECK(json.at("changes").front().at("fits") == true);
  CHECK(json.at("changes").back().at("fits") == false);
  std::istringstream lines{out};
  std::size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(fmt::format("{}. ", seen + 1))) continue;
    INFO(line);
    const Json& change = json.at("changes").at(seen++);
    const Bytes over{change.at("peak_bytes").get<std::int64_t>() - json.at("capacity_bytes").get<std::int64_t>()};
    const std::string least = change.contains("peak_is_least") ? "at least " : "";
    if (change.at("fits") == true)
      CHECK_THAT(line, !ContainsSubstring("fit"));
    else
      CHECK_THAT(line, ContainsSubstring(fmt::format(", does not fit: {}{} too much", least, to_text(over))));
  }
  CHECK(seen == json.at("changes").size());
}

TEST_CASE("tidepool advise proposes no change that neither fits nor lowers the peak by 1 %") {
  const ScratchFolder folder;
  std::string text = run_program({"export", kSample, "--to", "jsonl"}).out;
  const std::string step = folder.file("large.jsonl"), size = R"("size_bytes":154389504)";
  std::ofstream{step} << text.replace(text.find(size), size.size(), R"("size_bytes":4000000000000)");  // a parameter
  const ProgramResult result = run_program({"advise", step, "--capacity", "0.5x", "--plans", "none"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("wanted\nnothing that was tried lowers the peak by 1 % or more\n"));
}

TEST_CASE("tidepool advise changes nothing where the step fits") {
  CHECK(changes_of("15GiB").at("changes").empty());
  ProgramResult result = run_program({"advise", kSample, "--capacity", "15GiB"});
  CHECK(result.code == 0);
  CHECK(result.out == kSample + ": 14.07 GiB at the peak, 15 GiB (1.07x) wanted\nit fits as it is\n");
  result = run_program({"advise", kSample, "--capacity", "15GiB", "--apply", "pytorch"});
  CHECK(result.code == 0);
  CHECK(result.out.empty());
  CHECK(result.err == "advise: the step fits as it is: its peak is 14.07 GiB\n");
}

TEST_CASE("a step that fits is not enough where the job takes more outside of it") {
  const ScratchFolder folder;
  std::string text = run_program({"export", kSample, "--to", "jsonl"}).out;
  const std::string step = folder.file("step.jsonl"), meta = R"("meta":{)";
  std::ofstream{step} << text.replace(text.find(meta), meta.size(), meta + R"("allocated_peak_bytes":"21474836480",)");
  const std::string why = "the job's tensors take 20 GiB at most, outside of this trace, whose own peak is 14.07 GiB\n";
  ProgramResult result = run_program({"advise", step, "--capacity", "15GiB"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("wanted\nthe step fits as it is, the job does not: " + why));
  result = run_program({"advise", step, "--capacity", "15GiB", "--apply", "pytorch"});
  CHECK(result.code == 1);
  CHECK(result.err == "advise: the step fits as it is, the job does not: " + why);
  CHECK(run_program({"advise", step, "--capacity", "21GiB"}).code == 0);
  CHECK_THAT(run_program({"explain", step}).out, ContainsSubstring(why));
}

TEST_CASE("tidepool advise names a setting of the allocator if tensors fit and its reserved memory does not") {
  ProgramResult result = run_program({"advise", kSample, "--capacity", "14.2GiB"});
  CHECK(result.code == 0);
  CHECK(result.out == kSample +
                          R"(: 14.07 GiB at the peak, 14.2 GiB (1.01x) wanted
PyTorch's allocator reserves 14.25 GiB; with one of its settings the step fits

1. allocator
   peak 14.07 GiB (1x), time +0.00 %, 14.13 GiB reserved

    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
)");
  result = run_program({"advise", kSample, "--capacity", "1x"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("and no setting of it that was tried makes it fit\n"));
}

TEST_CASE("tidepool advise gives a compiled model the largest budget with which min-cut fits") {
  const Json json = changes_of("0.7x", "budget");
  REQUIRE(json.at("changes").size() == 1);
  const Json& change = json.at("changes").at(0);
  CHECK(change.at("fits") == true);
  const std::string code = change.at("code");
  const std::string start =
      "import torch._functorch.config\n\n\ndef apply(model):\n    torch._functorch.config.activation_memory_budget = ";
  REQUIRE(code.starts_with(start));
  CHECK(code.ends_with("\n    model.compile()\n"));
  const double budget = std::stod(code.substr(start.size()));
  const auto peak_with = [&](double share) {
    return Json::parse(
               run_program({"simulate", kSample, "--policy", fmt::format("min-cut(budget={:.2f})", share), "--json"})
                   .out)
        .at("peak_bytes")
        .get<std::int64_t>();
  };
  CHECK(peak_with(budget) == change.at("peak_bytes").get<std::int64_t>());
  CHECK(peak_with(budget + 0.05) > json.at("capacity_bytes").get<std::int64_t>());
}

TEST_CASE("tidepool advise refuses unsupported traces and options") {
  const ScratchFolder folder;
  const std::string path = folder.file("two.jsonl");
  std::ofstream{path} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                      << "\n{\"alloc\":0,\"size_bytes\":1024}\n{\"free\":0}\n";
  ProgramResult refused = run_program({"advise", path, "--capacity", "0.6x"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: " + path +
                           ": no forward op has a module, so nothing can be said of modules; expected a training "
                           "step as recorded by `tidepool record --torch` or `record --dry --torch`\n");
  refused = run_program({"advise", kSample, "--capacity", "0.6x", "--check"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: --check: expected it with a command after --, as in --check -- python3 train.py\n");
  refused = run_program({"advise", kSample, "--capacity", "0.6x", "--check", "--", "python3", "train.py"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: " + kSample +
                           ": --check: the trace is not of a dry run, with which a change is recorded; expected one of "
                           "`record --dry --torch`\n");
  refused = run_program({"advise", kSample, "--capacity", "0.6x", "--apply", "jax"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: --apply: 'jax' is no framework that code can be written for; expected pytorch\n");
  refused = run_program({"advise", kSample, "--capacity", "0.6x", "--kinds", "offlod"});
  CHECK(refused.code == 2);
  CHECK_THAT(
      refused.err,
      ContainsSubstring("tidepool: no kind of change named 'offlod', did you mean 'offload'?; known: checkpoint, "));
  refused = run_program({"advise", kSample, "--capacity", "0.6x,0.7x"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("--capacity, --machine: the lists ask for 2 answers; expected one\n"));
}

}  // namespace tidepool::advise_test
