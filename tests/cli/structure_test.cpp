// tidepool info --structure: its text, and its JSON for scripts.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"

namespace tidepool::structure_test {

using Json = nlohmann::json;

TEST_CASE("info --structure shows the layers of a step, for people and for scripts") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("gpt.tide");
  REQUIRE(run_program({"make", "gpt", "--layers", "5", "--hidden", "64", "-o", path}).code == 0);
  const ProgramResult text = run_program({"info", "--structure", path});
  CHECK(text.code == 0);
  CHECK(text.out ==
        "ops 1 to 50: 5 times 10 ops, from layers.0\n"
        "ops 57 to 126: 5 times 14 ops, from layers.4\n"
        "ops 131 to 160: 5 times 6 ops, from layers.0\n"
        "42 of 162 ops are a copy of no other\n");
  const Json json = Json::parse(run_program({"info", "--structure", path, "--json"}).out);
  CHECK(json["ops"] == 162);
  CHECK(json["distinct_ops"] == 42);
  CHECK(json["repeats"][1] == Json{{"first", 57}, {"period", 14}, {"copies", 5}});
  CHECK(json["wall_ns"] >= 0);
}

}  // namespace tidepool::structure_test
