// The selections that PyTorch's own tests of automatic selective checkpointing expect.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "policies/remat/auto_sac/selective.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/base/input.hpp"

namespace tidepool::auto_sac_test {

TEST_CASE("operators are kept as in PyTorch's tests of selective checkpointing") {
  const auto path = tests::shared_data("allocators/autosac.json");
  if (!path) return;
  const std::string text{read_input(*path).bytes()};
  const nlohmann::json table = nlohmann::json::parse(text).at("op_policy");
  SelectiveRegion region;
  for (const nlohmann::json& op : table.at("ops"))
    region.ops.push_back(
        {.memory = Bytes{op[2].get<std::int64_t>()}, .runtime = Nanos{op[1].get<std::int64_t>()}, .updates = {}});
  for (const nlohmann::json& op : table.at("view_like_ops")) region.ops[op.get<std::size_t>()].view = true;
  for (const nlohmann::json& op : table.at("rand_ops")) region.ops[op.get<std::size_t>()].random = true;
  for (const nlohmann::json& pair : table.at("inplace_ops"))
    region.ops[pair[0].get<std::size_t>()].updates = pair[1].get<std::size_t>();
  region.keep_random = table.at("force_store_random").get<bool>();
  const auto total = table.at("total_memory").get<double>();
  const auto expected = [](const nlohmann::json& row) {
    std::vector<bool> kept;
    for (const nlohmann::json& each : row[1]) kept.push_back(each.get<int>() == 1);
    return kept;
  };
  REQUIRE(table.at("optimal").size() >= 7);
  for (const nlohmann::json& row : table.at("optimal")) {
    INFO("optimal " << row.dump());
    CHECK(keep_best(region, share_of(region, row[0].get<double>() / total)) == expected(row));
  }
  REQUIRE(table.at("greedy").size() >= 7);
  for (const nlohmann::json& row : table.at("greedy")) {
    INFO("greedy " << row.dump());
    CHECK(keep_greedily(region, share_of(region, row[0].get<double>() / total)) == expected(row));
  }
}

}  // namespace tidepool::auto_sac_test
