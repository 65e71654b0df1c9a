// Synthetic steps: the ops and buffers that a layer adds.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "traces/base/error.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool::synthetic_test {

TEST_CASE("a layer adds 30 ops and the memory of its weights and saved activations to a GPT-like step") {
  GptShape shape{.layers = 3, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 1'000, .batch = 2};
  const Trace three = gpt_step(shape);
  shape.layers = 4;
  const Trace four = gpt_step(shape);
  CHECK(four.ops().size() - three.ops().size() == 10 + 14 + 6);
  // 12 h^2 + 4 h weights; each has 2 B, moments of 8 B and a master copy of 4 B.
  const std::int64_t weights = 12 * 64 * 64 + 4 * 64, tokens = 2 * 32;
  // Saved for each token are 16 h numbers of 2 B: the input, both norms, queries, keys and values, the attention's
  // output, the sum between attention and MLP, and twice 4 h in the MLP. Saved numbers of 4 B are two statistics for
  // each norm, and one sum for each head.
  const std::int64_t saved = tokens * (16 * 64 * 2 + 4 * 4 + 4 * 4);
  const auto before = [](const Trace& trace) {
    Bytes bytes;
    for (const Buffer& buffer : trace.buffers()) bytes += buffer.born_before ? buffer.size : Bytes{};
    return bytes;
  };
  CHECK((before(four) - before(three)).count() == weights * 14);
  CHECK((four.ideal_peak() - three.ideal_peak()).count() == weights * 14 + saved);
}

TEST_CASE("a micro-batch of a GPT-like step adds to the gradients of the one before") {
  GptShape shape{.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 1'000, .batch = 2};
  const Trace one = gpt_step(shape);
  shape.micro_batches = 3;
  const Trace three = gpt_step(shape);
  const auto updates = static_cast<std::size_t>(6 * 2 + 3);  // the number of updates of weights
  CHECK(three.ops().size() - updates == 3 * (one.ops().size() - updates));
  std::size_t gradients = 0;
  for (const Buffer& buffer : three.buffers()) gradients += buffer.kind == BufferKind::kGradient ? 1 : 0;
  std::size_t of_one = 0;
  for (const Buffer& buffer : one.buffers()) of_one += buffer.kind == BufferKind::kGradient ? 1 : 0;
  CHECK(gradients - updates == 3 * (of_one - updates));
}

TEST_CASE("an op takes the longer one of its arithmetic and its memory traffic, and at least the least time") {
  StepWriter write{{.flops_per_us = 1'000, .memory_rate = BytesPerSecond{1'000'000'000}, .least = 5_ns}, "test"};
  const BufferId a = write.existing(100_B, BufferKind::kParameter);
  write.op("nothing", 0, {});
  write.op("read and write", 0, {updates(a)});  // 200 B at 1 B/ns
  write.op("compute", 1'000, {reads(a)});       // 1 us
  write.op("as long", 100, {reads(a)});         // both 100 ns
  const Trace trace = write.finish();
  CHECK(trace.ops()[0].duration == 5_ns);
  CHECK(trace.ops()[1].duration == 200_ns);
  CHECK(trace.ops()[2].duration == 1_us);
  CHECK(trace.ops()[3].duration == 100_ns);
  CHECK(trace.data().meta.at("time") == "estimated");
}

TEST_CASE("six layers add a block to each stage of a ResNet-like step") {
  const auto ops = [](std::int64_t layers) { return resnet_step({.layers = layers, .batch = 2}).ops().size(); };
  // 7 ops forward, 9 backward (2 ReLUs, 2 normalisations, 2 gradients of kernels, 2 of inputs, the sum), 4 updates.
  CHECK(ops(20) - ops(14) == 3 * (7 + 9 + 4));
  CHECK(ops(14) - ops(8) == ops(20) - ops(14));
  CHECK_THROWS_MATCHES(ops(112), InputError, Catch::Matchers::Message("112 layers; expected 6 n + 2, as 110"));
}

TEST_CASE("the sides of a ResNet-like step's images must be divisible by four") {
  const auto step = [](std::int64_t image) { return resnet_step({.layers = 8, .image = image, .batch = 2}); };
  CHECK(step(4).ops().size() == step(8).ops().size());
  for (const std::int64_t image : {1, 2, 6})
    CHECK_THROWS_WITH(step(image), fmt::format("image of {} pixels; expected a multiple of 4", image));
}

TEST_CASE("the attention heads of a GPT-like step must have equal widths") {
  CHECK(gpt_step({.layers = 1, .hidden = 100, .heads = 5}).ops().size() > 30);
  CHECK_THROWS_WITH(gpt_step({.layers = 1, .hidden = 100, .heads = 7}),
                    "7 heads; expected a divisor of the width, 100");
}

TEST_CASE("a synthetic step whose bytes exceed the largest size is refused") {
  constexpr std::int64_t kMost = 1'000'000;
  CHECK(checked_size({std::int64_t{1} << 30, std::int64_t{1} << 31}).count() == std::int64_t{1} << 61);
  CHECK_THROWS_WITH(checked_size({std::int64_t{1} << 30, std::int64_t{1} << 31, 2}),
                    "a buffer of 1073741824 x 2147483648 x 2 B; expected at most 2305843009213693952 B");
  CHECK_THROWS_WITH(resnet_step({.layers = 8, .width = kMost, .image = kMost, .batch = kMost}),
                    "a buffer of 1000000 x 3 x 1000000 x 1000000 x 2 B; expected at most 2305843009213693952 B");
  CHECK_THROWS_WITH(gpt_step({.layers = 1, .hidden = kMost, .heads = 10, .sequence = kMost, .batch = kMost}),
                    "the sizes add up to more than 2305843009213693952");

  constexpr Bytes kPart{std::int64_t{1} << 60};
  StepWriter write{{.flops_per_us = 1'000, .memory_rate = BytesPerSecond{1'000'000'000}}, "test"};  // 1 B/ns, 1 flop/ns
  const BufferId first = write.existing(kPart, BufferKind::kParameter);
  const BufferId second = write.alloc(kPart);
  CHECK_THROWS_WITH(write.alloc(1_B), "the sizes add up to more than 2305843009213693952");
  CHECK_THROWS_WITH(write.op("copy", 0, {reads(first), writes(second)}),
                    "op 'copy' takes 2305843009213693952 ns or longer");
  CHECK_THROWS_WITH(write.op("add", 2305843009213693952.0, {}), "op 'add' takes 2305843009213693952 ns or longer");
  write.op("read", 0, {reads(first)});
  CHECK_THROWS_WITH(write.op("add", 2305843009213693696.0, {}),
                    "the durations add up to more than 2305843009213693952");
}

}  // namespace tidepool::synthetic_test
