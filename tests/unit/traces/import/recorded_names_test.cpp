#include "traces/import/recorded_names.hpp"

#include "tests/catch.hpp"

namespace tidepool::recorded_names_test {

TEST_CASE("the name of a range gives its phase if it names only one") {
  CHECK(phase_named("Benchmark Forward Only") == Phase::kForward);
  CHECK(phase_named("fwd") == Phase::kForward);
  CHECK(phase_named("autograd::engine::evaluate_function: MulBackward0") == Phase::kBackward);
  CHECK(phase_named("Optimizer.step#SGD.step") == Phase::kOptimizer);
  CHECK_FALSE(phase_named("forward_backward").has_value());
  CHECK_FALSE(phase_named("Warm-up").has_value());
}

TEST_CASE("the name of a range counts iterations if a number follows the word for an iteration") {
  for (const char* name : {"Warm-up Step 1", "iter_12", "ProfilerStep#3", "BATCH:0", "stepper step 4", "iteration=7"})
    CHECK(names_iteration(name));
  for (const char* name : {"step", "Optimizer.step#SGD.step", "7 steps", "Epoch 3", "batch_norm 2", ""})
    CHECK_FALSE(names_iteration(name));
}

TEST_CASE("the name of a range is a module if it is a dotted path") {
  for (const char* name : {"encoder.layer.0.attention", "_model.fc"}) CHECK(names_module(name));
  for (const char* name : {"encoder", "a..b", "a.b.", ".a", "1.5", "a.b c", "Optimizer.step#SGD", ""})
    CHECK_FALSE(names_module(name));
}

}  // namespace tidepool::recorded_names_test
