#include "traces/import/random_operators.hpp"

#include <algorithm>
#include <array>

namespace tidepool {

bool draws_random_numbers(std::string_view name) {
  constexpr std::array<std::string_view, 23> kRandom{
      "alpha_dropout", "bernoulli", "cauchy",     "dropout",          "exponential",    "feature_dropout",
      "fused_dropout", "geometric", "log_normal", "multinomial",      "native_dropout", "normal",
      "poisson",       "rand",      "rand_like",  "randint",          "randint_like",   "randn",
      "randn_like",    "random",    "randperm",   "rrelu_with_noise", "uniform"};
  const std::size_t first = name.find_first_not_of('_');
  if (first == std::string_view::npos) return false;
  name = name.substr(first, name.find_last_not_of('_') - first + 1);  // in-place and private operators have underscores
  return std::find(kRandom.begin(), kRandom.end(), name) != kRandom.end();
}

}  // namespace tidepool
