#include "policies/swap/autoswap/combined_score.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/machines.hpp"

namespace tidepool::combined_score_test {

TEST_CASE("a combined score is the weighted sum of standardised scores") {
  StepCircle circle;
  for (const std::int64_t t : {0, 100, 200, 300, 400, 500}) circle.start.emplace_back(t);
  for (const std::int64_t load : {10, 20, 20, 10, 10}) circle.load.emplace_back(load);
  // At 1 ns a byte each way, DOA (the duration of absence less the copies) is 200 - 20, 100 - 10 and 200 - 2 ns; WDOA
  // (the integral of the load over it) is 100 * (20 + 20), 100 * 10 and
  // 100 * (20 + 10).
  const std::vector<Gap> gaps{{{}, {}, 10_B, 0, 3}, {{}, {}, 5_B, 2, 4}, {{}, {}, 1_B, 1, 4}};
  const CombinedScore combined{circle, gaps, tests::byte_per_nano(), SlotLimits(5, 15_B)};
  const auto standardised = [](double a, double b, double c) {
    const double mean = (a + b + c) / 3;
    const double deviation =
        std::sqrt(((a - mean) * (a - mean) + (b - mean) * (b - mean) + (c - mean) * (c - mean)) / 3);
    return std::vector<double>{(a - mean) / deviation, (b - mean) / deviation, (c - mean) / deviation};
  };
  const std::vector<double> doa = standardised(180, 90, 198), wdoa = standardised(4'000, 1'000, 3'000);
  const std::vector<double> sum = combined({0.5, 0, -1, 0});
  for (std::size_t i = 0; i < 3; ++i) CHECK(sum[i] == Approx(0.5 * doa[i] - wdoa[i]));
  CHECK(combined({0, 0, 1, 0}) == combined({0, 0, 0, 1}));  // before any interval is picked
}

TEST_CASE("weights with the least cost are found, and each score alone is tried first") {
  int asked = 0;
  const ScoreWeights hidden{0.3, -0.6, 0.1, -0.9};
  const auto distance = [&](const ScoreWeights& weights) {
    ++asked;
    double sum = 0;
    for (std::size_t i = 0; i < hidden.size(); ++i) sum += (weights[i] - hidden[i]) * (weights[i] - hidden[i]);
    return sum;
  };
  const ScoreWeights found = tune_weights(distance, 400, 0);
  CHECK(asked <= 404 + 10);  // DIRECT ends after the division that it has begun
  CHECK(distance(found) < 0.01);

  asked = 0;
  CHECK(tune_weights(distance, 0, 0) == ScoreWeights{1, 0, 0, 0});
  CHECK(asked == 4);
  asked = 0;
  const ScoreWeights third{0, 0, 1, 0};
  CHECK(tune_weights([&](const ScoreWeights& weights) { return ++asked, weights == third ? 5.0 : 6.0; }, 400, 5) ==
        third);
  CHECK(asked == 3);
}

}  // namespace tidepool::combined_score_test
