// Invariants of every bundled sample under every pool and every policy. Each sample has a third of the runs, the
// largest a fifth, so that every pool and policy is tried at each capacity on two samples at least. Every run that ends
// well is replayed, and executed with real bytes.
#include <filesystem>
#include <set>
#include <string>

#include "tests/paths.hpp"
#include "tests/sample_runs.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::samples_test {

namespace {

void check_sample(const std::string& name, std::size_t every = 3) {
  tests::for_sample_runs(name, every, [](const Trace& trace, const RunSpec&, const Result& result) {
    const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 512_KiB});
    INFO(report.message);
    REQUIRE(report.outcome == HostOutcome::kOk);
    REQUIRE(report.corrupt == Bytes{});
  });
}

}  // namespace

TEST_CASE("every bundled sample is among those checked") {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator{paths::source_folder() + "/traces/samples"})
    if (entry.path().extension() == ".tide") found.insert(entry.path().stem());
  CHECK(found == tests::kSamples);
}

TEST_CASE("every policy and pool keeps the invariants on BERT-large") { check_sample("bert_large", 5); }
TEST_CASE("every policy and pool keeps the invariants on a BiLSTM") { check_sample("bilstm"); }
TEST_CASE("every policy and pool keeps the invariants on GPT-2") { check_sample("gpt2"); }
TEST_CASE("every policy and pool keeps the invariants on GPT-2 XL") { check_sample("gpt2_xl", 5); }
TEST_CASE("every policy and pool keeps the invariants on Inception v3") { check_sample("inception_v3", 5); }
TEST_CASE("every policy and pool keeps the invariants on ResNet-50") { check_sample("resnet50"); }
TEST_CASE("every policy and pool keeps the invariants on Swin-T") { check_sample("swin_t"); }
TEST_CASE("every policy and pool keeps the invariants on U-Net") { check_sample("unet"); }
TEST_CASE("every policy and pool keeps the invariants on VGG-16") { check_sample("vgg16"); }

}  // namespace tidepool::samples_test
