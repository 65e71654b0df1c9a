// Orders that reverse a chain: closed forms, and the dynamic program compared with all orders of its kind.
#include "policies/planning/remat/chain.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "policies/planning/remat/rotor.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "tests/shared_data.hpp"

namespace tidepool::chain_test {

namespace {

/// Stages of 1 ns and 1 byte, forward and backward. A stage saves only its output.
Chain uniform(std::size_t stages) {
  const Stage stage{1_ns, 1_ns, 1_B, 1_B, 0_B, {{1_ns, 1_ns, 1_ns, 1_ns, 1_B, 1_B, 1_B}}};
  return {std::vector<Stage>(stages, stage)};
}

std::int64_t choose(std::int64_t n, std::int64_t k) {
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= k; ++i) result = result * (n - k + i) / i;
  return result;
}

/// r l - C(c + r, r - 1), with l stages, c = slots + 1, and r the least with C(c + r, c) >= l.
std::int64_t binomial(std::int64_t stages, std::int64_t slots) {
  const std::int64_t c = slots + 1;
  std::int64_t r = 0;
  while (choose(c + r, c) < stages) ++r;
  return r * stages - (r == 0 ? 0 : choose(c + r, r - 1));
}

Chain random_chain(std::uint64_t seed, std::size_t stages) {
  tests::Random random{seed};
  const auto bytes = [&](std::size_t most) { return Bytes{static_cast<std::int64_t>(random.below(most + 1))}; };
  const auto nanos = [&] { return Nanos{static_cast<std::int64_t>(1 + random.below(9))}; };
  Chain chain;
  for (std::size_t i = 0; i < stages; ++i) {
    Stage stage{nanos(), nanos(), Bytes{1} + bytes(3), {}, bytes(2), {}};
    stage.sweep_peak = stage.output + bytes(2);
    for (std::size_t o = 0; o <= random.below(2); ++o) {
      const Bytes saved = stage.output + bytes(4);
      stage.options.push_back({nanos(), nanos(), nanos(), nanos(), saved, saved + bytes(2), saved + bytes(4)});
    }
    chain.stages.push_back(stage);
  }
  return chain;
}

/// Every persistent order of the stages i to j.
std::vector<ChainSequence> all_orders(const Chain& chain, std::uint32_t i, std::uint32_t j) {
  std::vector<ChainSequence> orders;
  for (std::uint32_t option = 0; option < chain.stages[i].options.size(); ++option)
    for (const ChainSequence& rest : i == j ? std::vector<ChainSequence>{{}} : all_orders(chain, i + 1, j)) {
      ChainSequence& order = orders.emplace_back();
      order.push_back({ChainVerb::kSave, i, option});
      order.insert(order.end(), rest.begin(), rest.end());
      order.push_back({ChainVerb::kBackward, i, 0});
    }
  for (std::uint32_t k = i + 1; k <= j; ++k)
    for (const ChainSequence& behind : all_orders(chain, k, j))
      for (const ChainSequence& before : all_orders(chain, i, k - 1)) {
        ChainSequence& order = orders.emplace_back();
        for (std::uint32_t l = i; l < k; ++l) order.push_back({l == i ? ChainVerb::kCheckpoint : ChainVerb::kSweep, l});
        order.insert(order.end(), behind.begin(), behind.end());
        order.insert(order.end(), before.begin(), before.end());
      }
  return orders;
}

}  // namespace

TEST_CASE("a sequence takes the sum of its steps' times, and its peak is its largest sum of bytes") {
  // Stage 0 has an output of 4 B, stage 1 one of 2 B. Each takes 3 ns forward and 5 ns backward, and saves 1 B besides
  // its output. A rerun of stage 0 takes 2 ns, or 1 ns after the backward of stage 1.
  const Chain chain{{{3_ns, 2_ns, 4_B, 6_B, 0_B, {{3_ns, 2_ns, 1_ns, 5_ns, 5_B, 7_B, 8_B}}},
                     {3_ns, 3_ns, 2_B, 2_B, 10_B, {{3_ns, 3_ns, 3_ns, 5_ns, 3_B, 3_B, 20_B}}}}};
  CHECK(cost_of(chain, save_all(chain)) == ChainCost{16_ns, 25_B});  // 5 B saved by stage 0, 20 B in stage 1's backward
  const ChainSequence again{{ChainVerb::kCheckpoint, 0},
                            {ChainVerb::kSave, 1},
                            {ChainVerb::kBackward, 1},
                            {ChainVerb::kSave, 0},
                            {ChainVerb::kBackward, 0}};
  CHECK(cost_of(chain, again) == ChainCost{17_ns, 24_B});  // 1 ns more, and 1 B less
}

TEST_CASE("a sequence that lacks an input, or ends too soon, is refused") {
  const Chain chain = uniform(2);
  CHECK_FALSE(cost_of(chain, {}).has_value());
  CHECK_FALSE(cost_of(chain, {{ChainVerb::kSave, 1}}).has_value());
  CHECK_FALSE(cost_of(chain, {{ChainVerb::kSave, 0}, {ChainVerb::kBackward, 0}}).has_value());
  CHECK_FALSE(cost_of(chain, {{ChainVerb::kSweep, 0}, {ChainVerb::kSave, 1}, {ChainVerb::kBackward, 1}}).has_value());
  CHECK_FALSE(
      cost_of(chain,
              {{ChainVerb::kSweep, 0}, {ChainVerb::kSave, 1}, {ChainVerb::kBackward, 1}, {ChainVerb::kBackward, 0}})
          .has_value());
}

TEST_CASE("binomial checkpointing recomputes as many stages as its closed form says") {
  for (std::size_t stages = 1; stages <= 40; ++stages)
    for (std::size_t slots = 0; slots <= 8; ++slots) {
      INFO(stages << " stages, " << slots << " slots");
      const std::int64_t sweeps = binomial(static_cast<std::int64_t>(stages), static_cast<std::int64_t>(slots));
      CHECK(revolve_sweeps(stages, slots) == sweeps);
      const auto cost = cost_of(uniform(stages), revolve(stages, slots));
      REQUIRE(cost.has_value());
      CHECK(cost->time == Nanos{sweeps + 2 * static_cast<std::int64_t>(stages)});
      // Besides the first input: the slots, the current output, and its successor.
      CHECK(cost->peak <= Bytes{static_cast<std::int64_t>(slots) + 2});
    }
}

TEST_CASE("with segments, every segment but the last runs once more") {
  const auto cost = cost_of(uniform(9), in_segments(9, {3, 6}));
  REQUIRE(cost.has_value());
  CHECK(cost->time == 24_ns);  // 9 forward, 9 backward, and the first two segments once more
  CHECK(cost->peak == 5_B);    // two checkpoints and a segment of three
}

TEST_CASE("nested segments hold few checkpoints at once and sweep once for each level") {
  // 8 stages, halved three times: 7 sweeps on three levels, with 4 stages on each level.
  const auto cost = cost_of(uniform(8), in_nested_segments(8, 1));
  REQUIRE(cost.has_value());
  CHECK(cost->time == Nanos{2 * 8 + 3 * 4});
  CHECK(cost->peak == 4_B);
}

TEST_CASE("the persistent order that is found is the best one, at every capacity") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Chain chain = random_chain(seed, 2 + seed % 4);
    std::vector<ChainCost> costs;
    for (const ChainSequence& order : all_orders(chain, 0, static_cast<std::uint32_t>(chain.size() - 1)))
      costs.push_back(*cost_of(chain, order));
    const std::int64_t most = 40;
    const Rotor rotor{chain, Bytes{most}, static_cast<int>(most)};
    for (std::int64_t capacity = 0; capacity <= most; ++capacity) {
      INFO("seed " << seed << " capacity " << capacity);
      std::optional<Nanos> best;
      for (const ChainCost& cost : costs)
        if (cost.peak <= Bytes{capacity} && (!best || cost.time < *best)) best = cost.time;
      CHECK(rotor.time(Bytes{capacity}) == best);
      if (!best) continue;
      const auto cost = cost_of(chain, *rotor.sequence(Bytes{capacity}));
      REQUIRE(cost.has_value());
      CHECK(cost->time == *best);
      CHECK(cost->peak <= Bytes{capacity});
    }
  }
}

TEST_CASE("on equal stages that save only their output, the dynamic program is no slower than binomial checkpointing") {
  for (std::size_t stages = 2; stages <= 24; ++stages) {
    const Rotor rotor{uniform(stages), 10_B, 10};
    for (std::size_t slots = 0; slots <= 6; ++slots) {
      const ChainCost binomial_cost = *cost_of(uniform(stages), revolve(stages, slots));
      INFO(stages << " stages, " << slots << " slots");
      REQUIRE(rotor.time(binomial_cost.peak).has_value());
      CHECK(*rotor.time(binomial_cost.peak) <= binomial_cost.time);
    }
  }
}

namespace {

/// A chain from Rockmate's file: for each stage the size of its input, and for each option times in ms and sizes.
Chain chain_from(const std::string& path) {
  std::ifstream file{path};
  const auto json = nlohmann::json::parse(file);
  const auto nanos = [](const nlohmann::json& ms) { return Nanos{std::llround(ms.get<double>() * 1e6)}; };
  const auto bytes = [](const nlohmann::json& size) { return Bytes{size.get<std::int64_t>()}; };
  Chain chain;
  for (std::size_t i = 0; i < json["fw"].size(); ++i) {
    const Bytes input = bytes(json["cw"][i]), output = bytes(json["cw"][i + 1]);
    const Nanos sweep = nanos(json["ff_fw"][i]);
    Stage stage{sweep, sweep, output, output + bytes(json["ff_fwd_tmp"][i]), output, {}};
    for (std::size_t o = 0; o < json["fw"][i].size(); ++o) {
      const Nanos forward = nanos(json["fw"][i][o]);
      const Bytes saved = bytes(json["cbw"][i + 1][o]);
      stage.options.push_back({forward, forward, forward, nanos(json["bw"][i][o]), saved,
                               saved + bytes(json["fwd_tmp"][i][o]),
                               saved + input + output + bytes(json["bwd_tmp"][i][o])});
    }
    chain.stages.push_back(std::move(stage));
  }
  return chain;
}

}  // namespace

TEST_CASE("a published chain with options takes no more time with more memory, and its sequences fit") {
  const auto path = tests::shared_data("remat/rockmate_example_DP_chain.json");
  if (!path) return;
  const Chain chain = chain_from(*path);
  REQUIRE(chain.size() == 14);
  Nanos least;
  for (const Stage& stage : chain.stages) {
    Nanos fastest = Nanos{std::numeric_limits<std::int64_t>::max()};
    for (const StageOption& o : stage.options) fastest = std::min(fastest, o.first + o.backward);
    least += fastest;
  }
  const Rotor rotor{chain, 2000_B, 2000};
  CHECK(rotor.time(2000_B) == least);
  std::optional<Nanos> before;
  for (std::int64_t capacity = 0; capacity <= 1500; capacity += 5) {
    INFO(capacity);
    const auto time = rotor.time(Bytes{capacity});
    if (before) {
      REQUIRE(time.has_value());
      CHECK(*time <= *before);
    }
    before = time;
    if (!time) continue;
    const auto cost = cost_of(chain, *rotor.sequence(Bytes{capacity}));
    REQUIRE(cost.has_value());
    CHECK(cost->time == *time);
    CHECK(cost->peak <= Bytes{capacity});
    CHECK(*time >= least);
  }
  // The results of a second solver, a memoised recursion over the same recurrence.
  CHECK(rotor.least_capacity() == 703_B);
  CHECK(rotor.time(703_B) == Nanos{83'524'471});
  CHECK(rotor.time(800_B) == Nanos{82'444'631});
}

}  // namespace tidepool::chain_test
