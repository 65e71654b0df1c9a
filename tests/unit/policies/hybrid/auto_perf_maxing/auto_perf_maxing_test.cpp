// torchtitan's choice between keeping, recomputing and offloading: its shares, the fates of ops, and plans.
#include "policies/hybrid/auto_perf_maxing/block_shares.hpp"
#include "tests/blocks_trace.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "traces/base/error.hpp"

namespace tidepool::auto_perf_maxing_test {

using tests::blocks_of_two;
using tests::exact_run;
using tests::exact_run_that_ends_well;

namespace {

constexpr BlockLimits kNoCopies{.budget = 20_B, .head = {}, .to_host = {}, .to_device = {}, .host = 1'000_B};

double recomputed(const std::vector<BlockShares>& shares) {
  double sum = 0;
  for (const BlockShares& each : shares) sum += each.recompute;
  return sum;
}

}  // namespace

TEST_CASE("shares recompute no more than the peak of each block requires") {
  // Three blocks of 10 B, no copies, 20 B of memory; k_i is the share of block i that is kept. During the third one's
  // backward: 10 (k_1 + k_2) + 10 <= 20. During the head: 10 (k_1 + k_2 + k_3) <= 20. So one block's bytes are
  // recomputed.
  const std::vector<BlockLoad> blocks(3, {10_B, {}, {}});
  const auto shares = share_out(blocks, kNoCopies);
  REQUIRE(shares);
  CHECK(recomputed(*shares) == Approx(1));
  for (const BlockShares& each : *shares) CHECK(each.keep + each.recompute + each.offload == Approx(1));
  CHECK((*shares)[0].keep + (*shares)[1].keep <= 1 + 1e-6);
  // The head needs 5 B, so half a block more is recomputed. With 10 B of temporaries in
  // the third block's backward, only that block's tensors fit.
  BlockLimits head = kNoCopies;
  head.head = 5_B;
  CHECK(recomputed(share_out(blocks, head).value()) == Approx(1.5));
  CHECK(recomputed(share_out({{10_B, {}, {}}, {10_B, {}, {}}, {10_B, {}, 10_B}}, kNoCopies).value()) == Approx(2));
}

TEST_CASE("shares offload as much as the link and the host allow, and nothing of the last block") {
  // k_i and o_i are the shares of block i that are kept and offloaded. Each block but the last may copy 5 B, so
  // o_1 = 0.5. During the third one's backward, o_2 counts like a kept share: 10 (k_1 + k_2 + o_2) <= 10. During the
  // head: 10 (k_1 + k_2 + k_3) <= 20. So k_3 = 1, k_1 + k_2 + o_2 = 1, and 0.5 is recomputed.
  const std::vector<BlockLoad> blocks(3, {10_B, {}, {}});
  BlockLimits limits = kNoCopies;
  limits.to_host = 5_B;
  CHECK(recomputed(share_out(blocks, limits).value()) == Approx(1));  // nothing can be swapped in
  limits.to_device = 5_B;
  const auto shares = share_out(blocks, limits).value();
  CHECK(recomputed(shares) == Approx(0.5));
  CHECK(shares[0].offload == Approx(0.5));
  CHECK(shares[2].offload == 0);
  limits.host = 3_B;
  CHECK(recomputed(share_out(blocks, limits).value()) == Approx(0.7));
}

TEST_CASE("if no shares fit, there is no answer") {
  CHECK_FALSE(share_out({{10_B, {}, {}}, {10_B, {}, 11_B}}, kNoCopies));  // the second block alone does not fit
  CHECK_FALSE(share_out({{15_B, 11_B, {}}, {10_B, {}, {}}}, kNoCopies));  // the first one keeps 11 B
}

TEST_CASE("expensive ops are offloaded, then cheap ones recomputed, in whole ops") {
  // By time per byte, the ops in order are 2, 0, 1, 3. A tenth of 100 B is to be offloaded: op 2, the most expensive,
  // is too large; op 0 may not be offloaded; op 1 fits. Half is to be recomputed: op 3 fits, then op 0 in the remaining
  // 20 B.
  const std::vector<BlockOp> ops{{20_B, 40_ns, false, false}, {10_B, 10_ns}, {40_B, 120_ns}, {30_B, 3_ns}};
  using enum Fate;
  CHECK(follow_shares(ops, {.keep = 0.4, .recompute = 0.5, .offload = 0.1}) ==
        std::vector{kRecompute, kOffload, kKeep, kRecompute});
}

TEST_CASE("an op larger than the rest of its share is recomputed if more would be kept than the share allows") {
  // 30 B are to be recomputed and 10 B kept: the op of 40 B fits neither. If it were kept, 30 B too many would be kept,
  // so it is recomputed.
  CHECK(follow_shares({{40_B, 1_ns}}, {.keep = 0.25, .recompute = 0.75, .offload = 0}) ==
        std::vector{Fate::kRecompute});
  // 34 B are to be kept and as many recomputed. The op of 28 B is recomputed. The op of 40 B is fixed, so it stays,
  // although 6 B too many are kept; in the last line, 40 B too many.
  CHECK(follow_shares({{40_B, 1_ns, true}, {28_B, 1_ns}}, {.keep = 0.5, .recompute = 0.5, .offload = 0}) ==
        std::vector{Fate::kKeep, Fate::kRecompute});
  CHECK(follow_shares({{40_B, 1_ns, true}}, {.keep = 0, .recompute = 1, .offload = 0}) == std::vector{Fate::kKeep});
}

TEST_CASE("a step that fits is left alone") {
  // The peak is in the second block's backward: x_0, x_1, y_0, y_1, g_2 and g_1.
  const Trace trace = blocks_of_two(2);
  REQUIRE(trace.ideal_peak() == 240_B);
  const Result result = exact_run_that_ends_well(trace, "auto-perf-maxing", 240_B);
  CHECK(result.totals.recompute == 0_ns);
  CHECK(result.totals.swap_out == 0_B);
}

TEST_CASE("tensors that a block drops are recomputed in its backward") {
  // k_1 and o_1 are the shares of the first block that are kept and offloaded. 135 B are left beside x_0. During the
  // second block's backward: 110 (k_1 + o_1) + 100 + 20 of gradients <= 135, so at most 15 B of the first block's 110 B
  // (y_0 and x_1) are kept or offloaded: too little for y_0, which is recomputed in 60 ns.
  const Result result = exact_run_that_ends_well(blocks_of_two(2), "auto-perf-maxing", 145_B);
  CHECK(result.totals.recompute == 60_ns);
  CHECK(result.totals.swap_out == 0_B);
  CHECK(result.totals.peak == 140_B);
}

TEST_CASE("if no shares fit, nothing is planned, and the next policy answers") {
  // The second block's backward alone needs 140 B: y_1 (100 B), 20 B of gradients, x_0 and x_1.
  CHECK(exact_run(blocks_of_two(2), "auto-perf-maxing", 135_B).outcome == Outcome::kOutOfMemory);
  CHECK(exact_run(blocks_of_two(2), "auto-perf-maxing+dtr", 140_B).outcome == Outcome::kOk);
}

TEST_CASE("a number of blocks outside its range is refused") {
  CHECK_THROWS_WITH(exact_run(blocks_of_two(2), "auto-perf-maxing(defer=0)"),
                    "auto-perf-maxing: option 'defer' is '0'; expected a whole number from 1 to 100000");
}

}  // namespace tidepool::auto_perf_maxing_test
