// The allocators' heights on real lifetimes agree with those of other implementations.
#include <cmath>
#include <string>
#include <vector>

#include "simulator/solvers/packing/pack.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::online_allocators_test {

namespace {

struct Published {
  std::string instance;
  double pytorch, expandable, growth, one_region,
      cnmem;        // all five: reserved over load - 1, in percent, with the published digits
  double digit[5];  // value of the last published digit of each of the five
};

double percent_over_load(const Trace& trace, const std::string& pool) {
  const Spec spec{pool};
  const PoolInfo& info = find_pool(spec.name);
  const Packing packing = pack(trace, info, Options{info.name, info.options, spec.options}, {});
  REQUIRE(packing.outcome == Outcome::kOk);
  return 100 * packing.gap();
}

}  // namespace

TEST_CASE("PyTorch's, TensorFlow's and CnMem's heights on real lifetimes are those measured elsewhere") {
  // Measured on the same lifetimes with separate implementations: PyTorch's allocator by one that reproduces its logs,
  // CnMem by its own code, bfc by one that was never compared with a log.
  const std::vector<Published> table{
      {"pytorch_wedsonlin_medium_128_train.dev0", 3.0, 0.9, 22, 3.8, 19.4, {0.1, 0.1, 1, 0.1, 0.1}},
      {"pytorch_nothanmin_fwd.dev0", 4.0, 0.49, 57, 1.4, 0.2, {0.1, 0.01, 1, 0.1, 0.1}},
      {"pytorch_bcrafton.dev0", 8.3, 5.5, 12, 1.4, 6.4, {0.1, 0.1, 1, 0.1, 0.1}},
      {"pytorch_ftcourse.dev0", 11.6, 0.7, 46, 2.2, 6.9, {0.1, 0.1, 1, 0.1, 0.1}},
      {"pytorch_eor_nn.dev0", 24.0, 4.6, 150, 16.1, 148, {0.1, 0.1, 1, 0.1, 1}},
      {"singa_alex_20itr", 2.9, 15.2, 46, 14.8, 43, {0.1, 0.1, 1, 0.1, 1}},
      {"singa_vgg_20itr", 18.6, 7.7, 60, 12.0, 11.2, {0.1, 0.1, 1, 0.1, 0.1}},
      {"resnet50", 11.4, 2.1, 42, 2.6, 9.0, {0.1, 0.1, 1, 0.1, 0.1}},
      {"pangu_2.6B", 46.6, 19.5, 55, 24.5, 46.2, {0.1, 0.1, 1, 0.1, 0.1}}};
  for (const Published& row : table) {
    const auto file = tests::shared_data("static_alloc/" + row.instance + ".csv");
    if (!file) return;
    INFO(row.instance);
    const Trace trace = load_trace(*file);
    const std::string pools[] = {"pytorch", "pytorch-expandable", "bfc", "bfc(allow_growth=off)", "cnmem"};
    const double published[] = {row.pytorch, row.expandable, row.growth, row.one_region, row.cnmem};
    for (int i = 0; i < 5; ++i) {
      INFO(pools[i]);
      const double rounding = 0.6 * row.digit[i];  // some were rounded twice
      CHECK(std::abs(percent_over_load(trace, pools[i]) - published[i]) <= rounding);
    }
  }
}

}  // namespace tidepool::online_allocators_test
