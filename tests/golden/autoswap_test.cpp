// AutoSwap's VGG step (three iterations recorded by its authors), strictly simulated.
#include <fmt/format.h>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"

namespace tidepool::autoswap_test {

using tidepool::tests::shared_data;

namespace {

/// Bytes that the authors count but their log does not list: the difference between their load curve and the blocks of
/// the log.
constexpr Bytes kUnnamed{13'763'052};

Nanos stall(const Trace& step, const std::string& policy, Bytes capacity) {
  const RunSpec spec{.pool = "ideal",
                     .policy = policy,
                     .capacity = capacity,
                     .machine = find_machine("titan-x-pcie3"),
                     .iterations = 5};
  const Result result = simulate(step, spec);
  INFO(result.message);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.peak <= capacity);
  return result.totals.stall.compute;
}

}  // namespace

TEST_CASE(
    "each score of AutoSwap, scheduled late, stalls no longer on VGG than the table of a strict simulation says") {
  const std::optional<std::string> path = shared_data("singa/vec_block_fresh_vgg.csv.gz");
  if (!path) return;
  const Trace step = one_iteration(load_trace(*path), 1);
  CHECK(step.ideal_peak() == 665'434'164_B);  // with kUnnamed 679197216; the authors' curve: 679197000
  struct Line {
    int limit;                           // MiB
    std::int64_t doa, aoa, wdoa, swdoa;  // us
  };
  for (const Line& line : {Line{240, 7'620, 7'860, 11'400, 11'400}, Line{260, 4'810, 7'510, 6'950, 6'950},
                           Line{280, 2'920, 4'420, 5'060, 2'920}, Line{300, 0, 3'480, 5'380, 2'560},
                           Line{320, 0, 0, 2'820, 2'820}, Line{340, 0, 0, 0, 0}, Line{400, 0, 0, 0, 0}}) {
    if (!tests::kOptimised && line.limit != 400) continue;
    for (const auto& [score, most] : {std::pair{"doa", line.doa}, std::pair{"aoa", line.aoa},
                                      std::pair{"wdoa", line.wdoa}, std::pair{"swdoa", line.swdoa}}) {
      INFO(fmt::format("{} at {} MiB", score, line.limit));
      const std::string policy = fmt::format("autoswap(score={})", score);
      CHECK(stall(step, policy, 1_MiB * line.limit) <= 1_us * most);
      // From 260 MiB on, the stalls are no longer either if kUnnamed takes a part of the capacity.
      if (line.limit >= 260) CHECK(stall(step, policy, 1_MiB * line.limit - kUnnamed) <= 1_us * most);
    }
  }
}

TEST_CASE("on VGG, AutoSwap's tuned combination stalls no longer than any of its scores alone") {
  const std::optional<std::string> path = shared_data("singa/vec_block_fresh_vgg.csv.gz");
  if (!path || !tests::optimised()) return;
  const Trace step = one_iteration(load_trace(*path), 1);
  for (const char* const scheduling : {"late", "published"})
    for (const int limit : {240, 260, 280}) {
      INFO(fmt::format("scheduling {} at {} MiB", scheduling, limit));
      const auto stall_with = [&](const char* score) {
        return stall(step, fmt::format("autoswap(score={},scheduling={})", score, scheduling), 1_MiB * limit);
      };
      const Nanos tuned = stall_with("tuned");
      for (const char* const score : {"doa", "aoa", "wdoa", "swdoa"}) CHECK(tuned <= stall_with(score));
    }
}

}  // namespace tidepool::autoswap_test
