// The structure that is found in steps of known structure.
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/step/structure.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool::fold_test {

namespace {

constexpr GptShape kSmall{.layers = 5, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 1'000, .batch = 2};

/// `runs` rows: each is an op with a name of its own, and then `copies` copies of a sequence of `ops` different ops. A
/// last op follows.
Trace rows_of_ops(int runs, int copies, int ops) {
  TraceBuilder build;
  const auto op = [&](const std::string& name) { build.run({.name = build.text(name), .duration = 1_us}, {}); };
  for (int run = 0; run < runs; ++run) {
    op("first of " + std::to_string(run));
    for (int copy = 0; copy < copies; ++copy)
      for (int i = 0; i < ops; ++i) op(std::to_string(i));
  }
  op("last");
  return build.finish();
}

}  // namespace

TEST_CASE("adjacent copies of some ops are one repeat, whatever ops surround them") {
  const Structure once = find_structure(rows_of_ops(1, 7, 4));
  CHECK(once.repeats == std::vector<Repeat>{{1, 4, 7, Repeat::kNone}});
  CHECK(once.distinct == 6);
  CHECK(once.like[0] == 0);
  for (std::uint32_t op = 1; op < 29; ++op) CHECK(once.like[op] == 1 + (op - 1) % 4);
  CHECK(once.like[29] == 29);
  const Structure twice = find_structure(rows_of_ops(2, 7, 4));
  CHECK(twice.repeats == std::vector<Repeat>{{1, 4, 7, Repeat::kNone}, {30, 4, 7, Repeat::kNone}});
  CHECK(find_structure(rows_of_ops(3, 1, 20)).repeats.empty());
}

TEST_CASE("a GPT-like step repeats layers in forward, backward and updates, and micro-batches if it has several") {
  // One op, then 10 per layer; 6 of the head, then 14 per layer; 2 of the embedding and 2 updates, then 6 per layer.
  const Structure one = find_structure(gpt_step(kSmall));
  CHECK(one.repeats ==
        std::vector<Repeat>{{1, 10, 5, Repeat::kNone}, {57, 14, 5, Repeat::kNone}, {131, 6, 5, Repeat::kNone}});
  CHECK(one.distinct == 1 + 10 + 6 + 14 + 2 + 2 + 6 + 1);

  GptShape shape = kSmall;
  shape.micro_batches = 4;
  const Structure four = find_structure(gpt_step(shape));
  // The first micro-batch makes the gradients and the others add to them, so their backward ops differ.
  REQUIRE(four.repeats.size() == 6);
  CHECK(four.repeats[0] == Repeat{1, 10, 5, Repeat::kNone});
  CHECK(four.repeats[1] == Repeat{57, 14, 5, Repeat::kNone});
  CHECK(four.repeats[2] == Repeat{129, 129, 3, Repeat::kNone});
  CHECK(four.repeats[3].period == 6);
  CHECK(four.repeats[4] == Repeat{130, 10, 5, 2});
  CHECK(four.repeats[5] == Repeat{186, 14, 5, 2});
}

TEST_CASE("the number of distinct ops of a deep step does not depend on its depth") {
  const auto distinct = [](std::int64_t layers) {
    return find_structure(resnet_step({.layers = layers, .batch = 2})).distinct;
  };
  CHECK(distinct(32) == distinct(302));
  GptShape deep = kSmall;
  deep.layers = 60;
  CHECK(find_structure(gpt_step(deep)).distinct == find_structure(gpt_step(kSmall)).distinct);
}

TEST_CASE("every op is a copy of an op with the same letter, and that op is a copy of itself only") {
  for (const Trace& trace : {gpt_step(kSmall), resnet_step({.layers = 26, .batch = 2})}) {
    const std::vector<std::uint32_t> letters = op_letters(trace, Alike::kUses);
    const Structure structure = find_structure(trace);
    for (std::uint32_t op = 0; op < letters.size(); ++op) {
      CHECK(letters[structure.like[op]] == letters[op]);
      CHECK(structure.like[structure.like[op]] == structure.like[op]);
    }
  }
}

TEST_CASE("random steps have no structure") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    CHECK(find_structure(tests::random_trace(seed, 300)).repeats.empty());
  }
}

TEST_CASE("ops that differ only in duration are alike unless durations count") {
  TraceBuilder build;
  for (int i = 0; i < 24; ++i) build.run({.name = build.text("op"), .duration = Nanos{i % 3}}, {});
  const Trace trace = build.finish();
  CHECK(find_structure(trace).repeats == std::vector<Repeat>{{0, 1, 24, Repeat::kNone}});
  CHECK(find_structure(trace, Alike::kDuration).repeats == std::vector<Repeat>{{0, 3, 8, Repeat::kNone}});
}

}  // namespace tidepool::fold_test
