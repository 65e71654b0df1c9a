// Heuristics that know the next use, in the DTR authors' simulator: a reference table, cell by cell.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::next_use_test {

namespace {

const std::map<std::string, std::string> kPolicyOf{{"F1", "next-use(cost=neighbourhood)"},
                                                   {"F2", "next-use"},
                                                   {"F3", "next-use(cost=neighbourhood,distance=0)"},
                                                   {"F4", "next-use(distance=0)"}};

std::string log_of(const std::string& folder, const std::string& model) {
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    if (entry.path().filename().string().starts_with(model)) return entry.path().string();
  return {};
}

}  // namespace

TEST_CASE("next-use has the overheads of the reference's heuristics F1 to F4, in every cell") {
  const auto table = tests::shared_data("remat/trace_aware_heuristics.csv");
  const auto folder = tests::shared_data("dtr");
  if (!table || !folder) return;
  std::map<std::string, Trace> traces;
  std::ifstream file{*table};
  std::string line;
  std::getline(file, line);  // model,budget_ratio,policy,status_or_overhead
  int compared = 0;
  while (std::getline(file, line)) {
    std::istringstream cells{line};
    std::string model, ratio, policy, expected;
    for (std::string* cell : {&model, &ratio, &policy, &expected}) std::getline(cells, *cell, ',');
    if (!kPolicyOf.contains(policy)) continue;
    std::erase(expected, '\r');
    if (!tests::kOptimised && model != "resnet" && model != "unet") continue;  // the two small logs
    const Trace& trace = traces.try_emplace(model, load_trace(log_of(*folder, model))).first->second;
    RunSpec spec{.pool = "ideal", .policy = kPolicyOf.at(policy), .machine = {}};
    spec.assume = Assumptions::find("simrd");
    spec.capacity = parse_capacity(ratio + "x", ideal_peak(trace, spec.assume));
    const Result result = simulate(trace, spec);
    INFO(fmt::format("{} {} {}: {}", model, policy, ratio, result.message));
    ++compared;
    if (expected == "oom") {
      CHECK(result.outcome == Outcome::kOutOfMemory);
      continue;
    }
    CHECK(result.outcome == Outcome::kOk);
    CHECK(fmt::format("{:.6f}", static_cast<double>(result.totals.makespan.count()) /
                                    static_cast<double>(result.baseline.count())) ==
          fmt::format("{:.6f}", std::stod(expected)));
  }
  CHECK(compared == (tests::kOptimised ? 82 : 60));
}

}  // namespace tidepool::next_use_test
