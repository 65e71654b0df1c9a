// Grappler's swapping heuristic in closed form: the tensors that it swaps, their order, and the cost of its triggers.
#include <set>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "tests/machines.hpp"

namespace tidepool::grappler_swap_test {

using tests::layer_trace;

namespace {

constexpr Bytes kSize{1'600'000};  // a copy takes 1.6 ms; Grappler assumes 0.1 ms

Result under(const Trace& trace, Bytes capacity) {
  return tests::exact_run_that_ends_well(trace, "grappler-swap", capacity);
}

/// The peak is in layer 6's backward: x_0 to x_5 and two gradients.
Trace six_layers(Nanos time) {
  return layer_trace(std::vector<tests::ChainLayer>(6, {"op", time, time, kSize}), kSize);
}

}  // namespace

TEST_CASE("tensors are swapped until the peak fits the memory, first those whose use is farthest from the peak") {
  const Trace trace = six_layers(1'000'000_ns);
  REQUIRE(trace.ideal_peak() == kSize * 8);
  for (const auto& [capacity, swapped] :
       {std::pair{kSize * 8, 0u}, std::pair{kSize * 8 - 1_B, 1u}, std::pair{kSize * 7 + 1_B, 1u},
        std::pair{kSize * 7, 2u}, std::pair{kSize * 6, 3u}}) {
    INFO(to_text(capacity));
    const Result result = under(trace, capacity);
    std::set<std::uint32_t> buffers, expected;
    for (const Action& action : result.realised.actions)
      if (action.verb == Verb::kSwapOut) buffers.insert(trace.version(VersionId{action.subject}).buffer.value());
    for (std::uint32_t i = 1; i <= swapped; ++i) expected.insert(i);
    CHECK(buffers == expected);
    CHECK(result.totals.swap_in == kSize * static_cast<std::int64_t>(swapped));
  }
}

TEST_CASE("the first reader waits for the swap-out, and a swap-in begins a whole op ahead") {
  // x_1 is swapped. Layer 2 waits for all of its swap-out, and the backward of layer 2 reads it. The swap-in begins
  // after the backward of layer 4, the last op that ends more than 0.1 ms before the backward of layer 3 ends.
  const Result result = under(six_layers(1'000'000_ns), kSize * 8 - 1_B);
  CHECK(result.totals.stall.d2h == 1'600'000_ns);
  CHECK(result.totals.stall.h2d == 600'000_ns);
}

TEST_CASE("buffers that live for a millisecond or less stay") {
  // x_1 lives longest: from the start of op 0 to the end of layer 2's backward, for 11 ops and the loss (20 ns).
  for (const auto& [time, swapped] : {std::pair{90'907_ns, 0_B}, std::pair{90'908_ns, kSize}}) {
    const Trace trace = six_layers(time);
    const RunSpec spec{
        .pool = "ideal", .policy = "grappler-swap", .capacity = kSize * 8 - 1_B, .machine = tests::byte_per_nano()};
    CHECK(simulate(trace, spec).totals.swap_out == swapped);
  }
}

}  // namespace tidepool::grappler_swap_test
