// Policies that work layer by layer, with options other than the defaults: plans replay and read the right bytes.
#include <fmt/format.h>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::layer_policies_test {

TEST_CASE("plans of layer-granular policies read the right bytes, whatever their options") {
  const Trace trace = load_trace(fmt::format("{}/traces/samples/unet.tide", paths::source_folder()));
  for (const char* policy :
       {"vdnn(which=all)", "vdnn(which=conv)+lru-swap", "torch-offload(stash=1,head=offload)", "layer-window(window=3)",
        "tflms(threshold=20,ahead=5,groupby=4)", "tflms(threshold=20,ahead=1,groupby=0,sync=1)",
        "tflms(threshold=20,ahead=1,groupby=0,sync=3)", "superneurons(recompute=memory,when=always)",
        "superneurons(recompute=speed,offload=always,when=always)", "superneurons(recompute=off)",
        "grappler-swap(passes=1)+lru-swap", "geeps+lru-swap"})
    for (const char* pool : {"best-fit", "pytorch"}) {
      INFO(fmt::format("{} on {}", policy, pool));
      const RunSpec spec{.pool = pool,
                         .policy = policy,
                         .capacity = trace.ideal_peak() / 10 * 8,
                         .machine = find_machine("a100-pcie4"),
                         .iterations = 2};
      const Result result = simulate(trace, spec, true);
      INFO(result.message);
      REQUIRE(result.outcome == Outcome::kOk);
      CHECK(replay(trace, spec, result.realised) == result.totals);
      CHECK(result.totals.swap_out + Bytes{result.totals.recompute_count} > Bytes{});
      const HostReport report = execute_on_host(trace, result.realised, {.threads = true, .arena = 512_KiB});
      INFO(report.message);
      CHECK(report.outcome == HostOutcome::kOk);
      CHECK(report.corrupt == Bytes{});
    }
}

}  // namespace tidepool::layer_policies_test
