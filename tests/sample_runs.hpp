// Every pool and policy on a bundled sample, from a capacity that cannot work to more than enough.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <string>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "tests/quick_spec.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::tests {

inline const std::set<std::string> kSamples{"bert_large", "bilstm", "gpt2", "gpt2_xl", "inception_v3",
                                            "resnet50",   "swin_t", "unet", "vgg16"};

/// Runs every pool and policy on a sample at 0.02, 0.5, 0.8, 0.9, 1.1 and 10 times its ideal peak, but only every
/// `every`th of these runs. A run of a policy that may recompute ends early if it recomputes or waits for more than a
/// fifth of the step's time. Builds for finding bugs try one pool (pytorch) at one capacity (0.8), and end such runs at
/// a fiftieth. A run that ends well is replayed, and then check(trace, spec, result) is called with the plan.
template <class Check>
void for_sample_runs(const std::string& name, std::size_t every, Check check) {
  REQUIRE(kSamples.contains(name));
  const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), name));
  auto turn = static_cast<std::size_t>(std::distance(kSamples.begin(), kSamples.find(name)));
  for (const PoolInfo* pool : all_pools())
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.02, 0.5, 0.8, 0.9, 1.1, 10.0}) {
        if (kOptimised ? turn++ % every != 0 : !(pool->name == "pytorch" && fraction == 0.8)) continue;
        INFO(fmt::format("{} pool {} policy {} capacity {}x", name, pool->name, policy->name, fraction));
        RunSpec spec{.pool = quick_spec(*pool), .policy = quick_spec(*policy), .machine = find_machine("a100-pcie4")};
        spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
        if (policy->kind != PolicyKind::kSwap) spec.overhead_limit = kOptimised ? 1.2 : 1.02;
        const Result result = simulate(trace, spec, true);
        INFO(result.message);
        REQUIRE(result.outcome != Outcome::kError);
        if (fraction == 10.0) REQUIRE(result.outcome == Outcome::kOk);
        if (fraction == 0.02) REQUIRE(result.outcome != Outcome::kOk);
        if (result.outcome != Outcome::kOk) continue;
        REQUIRE(replay(trace, spec, result.realised) == result.totals);
        REQUIRE(result.totals.footprint <= spec.capacity);
        REQUIRE(result.totals.makespan >= result.baseline);
        check(trace, spec, result);
      }
}

}  // namespace tidepool::tests
