// Mimose's choice of blocks in closed form: by bytes, in buckets, and from the front.
#include <vector>

#include "tests/blocks_trace.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"

namespace tidepool::mimose_test {

using tests::blocks_of_two;
using tests::exact_run;
using tests::exact_run_that_ends_well;

namespace {

/// The ops that run again, in the order of their reruns.
std::vector<std::uint32_t> reruns(const Result& result) {
  std::vector<bool> ran(1000);
  std::vector<std::uint32_t> again;
  for (const Action& action : result.realised.actions) {
    if (action.verb != Verb::kRun) continue;
    if (ran.at(action.subject)) again.push_back(action.subject);
    ran.at(action.subject) = true;
  }
  return again;
}

}  // namespace

// Op 2 i makes y_i. Checkpointing block i frees only y_i, since x_(i+1) is the block's output.

TEST_CASE("of equal blocks, Mimose checkpoints as few as cover the excess, beginning with the first block") {
  // The peak is in the backward of the last block: x_0 to x_3 and two gradients of 10 B, y_0 to y_3 of 100 B.
  const Trace trace = blocks_of_two(4);
  REQUIRE(trace.ideal_peak() == 460_B);
  CHECK(reruns(exact_run_that_ends_well(trace, "mimose", 460_B)).empty());
  const Result one = exact_run_that_ends_well(trace, "mimose", 360_B);
  CHECK(reruns(one) == std::vector<std::uint32_t>{0});
  CHECK(one.totals.makespan == one.baseline + 60_ns);
  const Result two = exact_run_that_ends_well(trace, "mimose", 359_B);
  CHECK(reruns(two) == std::vector<std::uint32_t>{2, 0});  // in backward, block 1 comes before block 0
  CHECK(two.totals.makespan == two.baseline + 120_ns);
}

TEST_CASE("Mimose takes the first block of the smallest bucket with a block that frees enough") {
  // The peak has 365 B of all y_i, and 70 B of other buffers. The buckets are {100, 95, 100}, {50} and {20} B.
  const Trace trace = blocks_of_two({100_B, 50_B, 95_B, 20_B, 100_B});
  REQUIRE(trace.ideal_peak() == 435_B);
  const auto missing = [&](Bytes bytes) { return reruns(exact_run_that_ends_well(trace, "mimose", 435_B - bytes)); };
  CHECK(missing(20_B) == std::vector<std::uint32_t>{6});
  CHECK(missing(21_B) == std::vector<std::uint32_t>{2});
  CHECK(missing(51_B) == std::vector<std::uint32_t>{0});  // 95 B would be enough, but block 0 is the first
  CHECK(missing(96_B) == std::vector<std::uint32_t>{0});
  // No block frees 101 B. Then the first block of the smallest bucket is taken: block 3. 81 B are left: block 0
  // follows.
  CHECK(missing(101_B) == std::vector<std::uint32_t>{6, 0});
}

TEST_CASE("a block with nine tenths of the largest one's bytes is in its bucket, a smaller one is not") {
  // 45 B are missing. With 90 B, block 1 is in the bucket of block 0, which comes first; with 89 B, its bucket is
  // smaller.
  const Trace one = blocks_of_two({100_B, 90_B, 100_B}), two = blocks_of_two({100_B, 89_B, 100_B});
  CHECK(reruns(exact_run_that_ends_well(one, "mimose", one.ideal_peak() - 45_B)) == std::vector<std::uint32_t>{0});
  CHECK(reruns(exact_run_that_ends_well(two, "mimose", two.ideal_peak() - 45_B)) == std::vector<std::uint32_t>{2});
}

TEST_CASE("Mimose's excess does not include the memory in which a block runs again") {
  // The last block frees 100 B, but is recomputed into 100 B at the peak. The blocks before it have only 10 B each.
  const Trace trace = blocks_of_two({10_B, 10_B, 100_B});
  CHECK(exact_run(trace, "mimose", trace.ideal_peak() - 21_B).outcome == Outcome::kOutOfMemory);
  CHECK(exact_run(trace, "mimose+dtr", trace.ideal_peak() - 10_B).outcome == Outcome::kOk);
}

}  // namespace tidepool::mimose_test
