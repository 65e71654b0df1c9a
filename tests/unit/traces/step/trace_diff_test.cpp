#include "traces/step/trace_diff.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::trace_diff_test {

namespace {

/// How a small step of three layers is changed.
struct Changed {
  std::int64_t batch = 1;
  bool extra = false;        ///< layer 1 makes a copy of its input, which backward uses
  bool kept = false;         ///< the output of layer 2 is never freed
  bool from_before = false;  ///< a buffer without a name was there before the step
  bool left = false;         ///< a buffer that is left for the next step, as the step before left one
  std::int64_t address = 0;  ///< where addresses begin
};

Trace step(const Changed& changed) {
  TraceBuilder build;
  std::int64_t address = changed.address;
  const auto spec = [&](std::int64_t mib, BufferKind kind, const char* name = "") {
    return Buffer{.size = 1_MiB * mib, .address = address += 1 << 20, .name = build.text(name), .kind = kind};
  };
  const auto op = [&](const char* name, const char* module, const char* line, Phase phase) {
    return Op{.name = build.text(name),
              .module = build.text(module),
              .phase = phase,
              .duration = Nanos{100 + changed.address},
              .line = build.text(line)};
  };
  const BufferId weight = build.existing(spec(4, BufferKind::kParameter, "fc.weight"));
  if (changed.from_before) build.existing(spec(2, BufferKind::kUnknown));
  const BufferId earlier = changed.left ? build.existing(spec(5, BufferKind::kUnknown)) : BufferId{};
  std::vector<BufferId> kept, extra;
  BufferId before = build.alloc(spec(1 * changed.batch, BufferKind::kInput));
  build.run(op("aten::randint", "", "train.py:5", Phase::kForward), {{before, Access::kWrite}});
  kept.push_back(before);
  for (const char* line : {"model.py:10", "model.py:11", "model.py:12"}) {
    if (changed.extra && kept.size() == 2) {
      extra.push_back(build.alloc(spec(3, BufferKind::kActivation)));
      build.run(op("aten::clone", "fc", "model.py:99", Phase::kForward), {{before}, {extra[0], Access::kWrite}});
    }
    const BufferId out = build.alloc(spec(2 * changed.batch, BufferKind::kActivation));
    build.run(op("aten::mm", "fc", line, Phase::kForward), {{before}, {weight}, {out, Access::kWrite}});
    kept.push_back(before = out);
  }
  while (kept.size() > 1) {
    const BufferId last = kept.back();
    kept.pop_back();
    const BufferId gradient = build.alloc(spec(2 * changed.batch, BufferKind::kGradient));
    std::vector<TraceBuilder::Touch> uses{{last}, {gradient, Access::kWrite}};
    if (!extra.empty()) uses.push_back({extra[0]});
    build.run(op("aten::mm_backward", "fc", "train.py:7", Phase::kBackward), uses);
    build.free(gradient);
    if (!(changed.kept && kept.size() == 2)) build.free(last);
  }
  for (const BufferId buffer : extra) build.free(buffer);
  build.free(kept[0]);
  if (changed.left) {
    const BufferId metric = build.alloc(spec(5, BufferKind::kActivation));
    build.run(op("aten::softmax", "", "train.py:9", Phase::kForward), {{weight}, {metric, Access::kWrite}});
    build.free(earlier);
  }
  return build.finish();
}

Bytes at_peak(const TraceDiff& diff) {
  return std::accumulate(diff.buffers.begin(), diff.buffers.end(), Bytes{},
                         [](Bytes sum, const BufferDifference& each) { return sum + each.at_peak; });
}

}  // namespace

TEST_CASE("times and addresses are no difference") {
  const TraceDiff diff = diff_traces(step({}), step({.address = 1'000'000}));
  CHECK(diff.same());
  CHECK(diff.paired_ops == 7);
}

TEST_CASE("a diff names the line of what is new, and of what became larger first") {
  const TraceDiff extra = diff_traces(step({}), step({.extra = true}));
  REQUIRE(extra.rows.size() == 1);
  CHECK(extra.rows[0].change == Difference::kNew);
  CHECK(extra.rows[0].cause == "model.py:99");
  CHECK(extra.rows[0].at_peak == 3_MiB);
  CHECK(extra.peak_b - extra.peak_a == 3_MiB);
  CHECK((extra.only_a == 0 && extra.only_b == 1 && extra.at_b));
  const TraceDiff gone = diff_traces(step({.extra = true}), step({}));
  CHECK(gone.rows.at(0).change == Difference::kGone);
  CHECK(!gone.at_b);

  const TraceDiff larger = diff_traces(step({}), step({.batch = 3}));
  CHECK(larger.rows.at(0).cause == "train.py:5");  // all others are larger because the input is
  CHECK(larger.rows.at(0).change == Difference::kLarger);
  CHECK(larger.rows.at(0).at_peak == larger.peak_b - larger.peak_a);
}

TEST_CASE("a diff tells buffers that live longer from new ones, and those from before the step") {
  const TraceDiff kept = diff_traces(step({}), step({.kept = true}));
  REQUIRE(kept.rows.size() == 1);
  CHECK(kept.rows[0].change == Difference::kLonger);
  CHECK(kept.rows[0].cause == "model.py:11");
  CHECK(kept.rows[0].until_a == OpId{5});
  CHECK(!kept.rows[0].until_b.valid());
  CHECK(diff_traces(step({.kept = true}), step({})).rows.at(0).change == Difference::kShorter);

  const TraceDiff before = diff_traces(step({}), step({.from_before = true}));
  REQUIRE(before.rows.size() == 1);
  CHECK((before.rows[0].change == Difference::kNew && before.rows[0].cause.empty()));
  CHECK(before.rows[0].at_peak == 2_MiB);
}

TEST_CASE("what an earlier step has left is of the line that leaves it in this step") {
  const TraceDiff diff = diff_traces(step({}), step({.left = true}));
  REQUIRE(diff.rows.size() == 1);
  CHECK(diff.rows[0].cause == "train.py:9");
  CHECK(diff.rows[0].by_line);
  CHECK(diff.rows[0].at_peak == 5_MiB);
  CHECK(diff.rows[0].buffers == 2);
}

TEST_CASE("the differences at the compared instant add up to the difference of the live bytes") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Trace a = tests::random_trace(seed, 80), b = tests::random_trace(seed % 3 == 0 ? seed : seed + 1, 90);
    const TraceDiff diff = diff_traces(a, b);
    const Bytes higher = diff.at_b ? diff.instant.live - diff.other : diff.other - diff.instant.live;
    REQUIRE(at_peak(diff) == higher);
    REQUIRE(diff.instant.live == std::max(a.ideal_peak(), b.ideal_peak()));
    Bytes in_rows;
    for (const DifferenceRow& row : diff.rows) in_rows += row.at_peak;
    REQUIRE(in_rows == higher);
    REQUIRE(diff_traces(a, a).same());
  }
}

}  // namespace tidepool::trace_diff_test
