#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"

using namespace tidepool;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

namespace {

const std::string kSample = std::string{TIDEPOOL_SOURCE_DIR} + "/traces/samples/gpt2.tide";

}  // namespace

TEST_CASE("tidepool fit begins with the verdict") {
  ProgramResult result = run_program({"fit", kSample, "--device", "a100-40gb"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("fits: 15.67 of 39.38 GiB, margin 23.71 GiB\n"));
  CHECK_THAT(result.out, ContainsSubstring("\nworkspaces  16.25 MiB of cuBLAS, which the recording does not have\n"));
  CHECK_THAT(result.out,
             ContainsSubstring("\npeak        in front of op 242, aten::_log_softmax_backward_data\n"
                               "allocator   PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True reserves 120 MiB less: "
                               "14.13 GiB\n"));
  result = run_program({"fit", kSample, "--device", "t4"});  // what does not fit for certain is said so
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("fits: 14.38 of 14.58 GiB, margin 205.8 MiB; not for certain, it may be 15.38 "
                                    "GiB\n"));
  CHECK_THAT(result.err, ContainsSubstring("the context on t4 is assumed, not measured"));
}

TEST_CASE("tidepool fit adds up what it predicts") {
  const ProgramResult result = run_program({"fit", kSample, "--device", "rtx-4090", "--json"});
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  const auto bytes = [&](const char* key) { return json.at(key).get<std::int64_t>(); };
  CHECK(json.at("fits") == true);
  CHECK(json.at("device") == "rtx-4090");
  CHECK(bytes("predicted_bytes") == bytes("reserved_bytes") + bytes("context_bytes") + bytes("workspace_bytes"));
  CHECK(bytes("margin_bytes") == bytes("capacity_bytes") - bytes("predicted_bytes"));
  CHECK((bytes("low_bytes") <= bytes("predicted_bytes") && bytes("predicted_bytes") <= bytes("high_bytes")));
  CHECK(json.at("peak_at").at("op") == 242);
  std::int64_t held = 0;
  for (const Json& holder : json.at("holders")) held += holder.at("bytes").get<std::int64_t>();
  CHECK(held == bytes("live_bytes"));
  CHECK_FALSE(json.contains("largest_batch"));
}

TEST_CASE("a job that does not fit is a result") {
  const ScratchFolder folder;
  std::ofstream{folder.file("large.jsonl")} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                                            << "\n{\"alloc\":0,\"size_bytes\":21474836480}\n";
  const ProgramResult result = run_program({"fit", folder.file("large.jsonl"), "--device", "t4"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("does not fit: 20.13 of 14.58 GiB, 5.553 GiB too much\n"));
}

TEST_CASE("tidepool fit records a command dry, and judges what PyTorch's allocator reserves in it") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string reserved = folder.file("reserved");
  const ProgramResult result = run_program(
      {"fit", "--device", "rtx-3090", "--json", "--", python, TIDEPOOL_SOURCE_DIR "/tests/dry/reserved.py", reserved});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json.at("fits") == true);
  CHECK(json.at("workspaces_recorded") == true);
  CHECK(json.at("workspace_bytes") == 0);
  CHECK(json.at("reserved_bytes") == std::stoll(content_of(reserved)));
  CHECK(json.at("notes").size() == 1);  // modules and kinds are there; the context is assumed
}

TEST_CASE("tidepool fit says why a command was not recorded") {
  const ProgramResult result = run_program({"fit", "--device", "t4", "--", "true"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, StartsWith("tidepool: true: nothing was recorded\n"));
  CHECK_THAT(result.err, ContainsSubstring("no process of the job used the CUDA runtime"));
}

TEST_CASE("tidepool fit says what it cannot do") {
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fit");
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(refusal({kSample, "--device", "rtx-4091"}), StartsWith("tidepool: no device named 'rtx-4091', did you "
                                                                    "mean 'rtx-4090'?"));
  CHECK(refusal({kSample, "--device", "t4", "--batch"}) ==
        "tidepool: --batch: " + kSample +
            " was recorded with one batch size; expected a command with {batch}, as in -- python3 train.py "
            "--batch-size {batch}\n");
  CHECK(refusal({"--device", "t4", "--batch", "--", "python3", "train.py"}) ==
        "tidepool: --batch: the command has no {batch}; expected it where the job takes its batch size, as in -- "
        "python3 train.py --batch-size {batch}\n");
  CHECK(refusal({"--device", "t4", "--", "python3", "train.py", "{batch}"}) ==
        "tidepool: {batch}: expected --batch too, which tries batch sizes there\n");
  CHECK(refusal({kSample, "--device", "t4", "--pool", "bfc"}) ==
        "tidepool: --pool: 'bfc' is no allocator of PyTorch; expected pytorch or pytorch-expandable\n");
}
