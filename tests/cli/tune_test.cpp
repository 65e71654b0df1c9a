#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"

namespace tidepool::tune_test {

using Json = nlohmann::json;

namespace {

const std::string kSample = paths::source_folder() + "/traces/samples/vgg16.tide";

}  // namespace

TEST_CASE("tidepool tune prints the best setting in PyTorch's form") {
  ProgramResult result = run_program({"tune", kSample});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("best of 60: PYTORCH_CUDA_ALLOC_CONF="));
  CHECK_THAT(result.out, ContainsSubstring("(defaults)"));
  result = run_program({"tune", kSample, "--json"});
  const Json json = Json::parse(result.out);
  REQUIRE(json.at("settings").size() == 60);
  std::int64_t last = 0;
  for (const Json& one : json.at("settings")) {
    CHECK(one.at("outcome") == "ok");
    CHECK(one.at("reserved_bytes").get<std::int64_t>() >= std::max(last, json.at("load_bytes").get<std::int64_t>()));
    last = one.at("reserved_bytes").get<std::int64_t>();
  }
}

TEST_CASE("tidepool tune says so if no setting can help") {
  const ProgramResult result = run_program({"tune", kSample, "--capacity", "0.5x"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("no setting can help: "));
}

}  // namespace tidepool::tune_test
