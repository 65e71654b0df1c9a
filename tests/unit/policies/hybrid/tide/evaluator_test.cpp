// The evaluator's schedule of one step, in closed form.
#include "policies/hybrid/tide/evaluator.hpp"

#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::evaluator_test {

TEST_CASE("a swap-in that does not fit begins when its memory is free, and the op waits for it") {
  // op0 writes a (100 B) | op1 writes b (100 B) | op2 reads b | op3 reads a; each op takes 100 ns, a copy of a 100 ns.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{b, Access::kWrite}});
  build.run({.duration = 100_ns}, {{b, Access::kRead}});
  build.free(b);
  build.run({.duration = 100_ns}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  const RunSpec spec{.pool = "ideal", .policy = "none", .capacity = 150_B, .machine = tests::byte_per_nano()};
  const StepModel model{trace, spec, true, 1_B, {}};
  REQUIRE(model.gaps.size() == 1);
  Evaluator evaluator{model};
  // Until 100 op0, until 200 the swap-out for which op1 waits, until 400 op1 and op2, until 500 the swap-in, then op3.
  const Evaluation& found = evaluator.evaluate({How::kCopied});
  CHECK(found.period == 600_ns);
  CHECK(found.overs == 0);
  CHECK(found.start == std::vector<Nanos>{0_ns, 200_ns, 300_ns, 500_ns, 600_ns});
  CHECK(evaluator.evaluate({How::kCopied}, 600_ns).period == 600_ns);
  CHECK_FALSE(evaluator.evaluate({How::kCopied}, 599_ns).possible());
}

}  // namespace tidepool::evaluator_test
