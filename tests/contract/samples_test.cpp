// The same invariants on every bundled sample, under every pool and every policy, from a capacity that cannot work to
// more than enough: 0.02, 0.5, 0.8, 0.9, 1.1 and 10 times the ideal peak, two of them each on one sample, so that every
// pool and policy meets each on three. Every run that ends is replayed and executed with real bytes; one that
// recomputes or waits for more than a fifth of the step's time is ended there. Builds for finding bugs try one pool
// (pytorch) at one capacity (0.8), and end runs at a fiftieth.
#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/quick_spec.hpp"
#include "traces/importer.hpp"
#include "validator/host_backend.hpp"

using namespace tidepool;

namespace {

const std::set<std::string> kSamples{"bert_large", "bilstm", "gpt2", "gpt2_xl", "inception_v3",
                                     "resnet50",   "swin_t", "unet", "vgg16"};

void check_sample(const std::string& name) {
  REQUIRE(kSamples.contains(name));
  const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", TIDEPOOL_SOURCE_DIR, name));
  auto turn = static_cast<std::size_t>(std::distance(kSamples.begin(), kSamples.find(name)));
  for (const PoolInfo* pool : all_pools())
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.02, 0.5, 0.8, 0.9, 1.1, 10.0}) {
        if (tests::kOptimised ? turn++ % 3 != 0 : !(pool->name == "pytorch" && fraction == 0.8)) continue;
        INFO(fmt::format("{} pool {} policy {} capacity {}x", name, pool->name, policy->name, fraction));
        RunSpec spec{.pool = tests::quick_spec(*pool),
                     .policy = tests::quick_spec(*policy),
                     .machine = find_machine("a100-pcie4")};
        spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
        spec.overhead_limit = tests::kOptimised ? 1.2 : 1.02;
        const Result result = simulate(trace, spec, true);
        INFO(result.message);
        REQUIRE(result.outcome != Outcome::kError);
        if (fraction == 10.0) REQUIRE(result.outcome == Outcome::kOk);
        if (fraction == 0.02) REQUIRE(result.outcome != Outcome::kOk);
        if (result.outcome != Outcome::kOk) continue;
        REQUIRE(replay(trace, spec, result.realised) == result.totals);
        REQUIRE(result.totals.footprint <= spec.capacity);
        REQUIRE(result.totals.makespan >= result.baseline);
        const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 512_KiB});
        INFO(report.message);
        REQUIRE(report.outcome == HostOutcome::kOk);
        REQUIRE(report.corrupt == Bytes{});
      }
}

}  // namespace

TEST_CASE("every bundled sample is among those checked") {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator{std::string{TIDEPOOL_SOURCE_DIR} + "/traces/samples"})
    if (entry.path().extension() == ".tide") found.insert(entry.path().stem());
  CHECK(found == kSamples);
}

TEST_CASE("every policy and pool keeps the invariants on BERT-large") { check_sample("bert_large"); }
TEST_CASE("every policy and pool keeps the invariants on a BiLSTM") { check_sample("bilstm"); }
TEST_CASE("every policy and pool keeps the invariants on GPT-2") { check_sample("gpt2"); }
TEST_CASE("every policy and pool keeps the invariants on GPT-2 XL") { check_sample("gpt2_xl"); }
TEST_CASE("every policy and pool keeps the invariants on Inception v3") { check_sample("inception_v3"); }
TEST_CASE("every policy and pool keeps the invariants on ResNet-50") { check_sample("resnet50"); }
TEST_CASE("every policy and pool keeps the invariants on Swin-T") { check_sample("swin_t"); }
TEST_CASE("every policy and pool keeps the invariants on U-Net") { check_sample("unet"); }
TEST_CASE("every policy and pool keeps the invariants on VGG-16") { check_sample("vgg16"); }
