// The smallest step in which a swap is possible.
#pragma once

#include <array>

#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"

namespace tidepool::tests {

/// Op 0 writes a, op 1 writes b (4 KiB), op 2 reads both and writes c (512 B), which is the output of the step.
struct ThreeOps {
  VersionId a, b, c;
  Trace trace;

  ThreeOps(Bytes size_of_a, const std::array<Nanos, 3>& durations) : trace{make(size_of_a, durations)} {}

  /// A plan in which a, at address 0, is swapped out before op 1 and swapped in before op 2.
  Plan swapped(Bytes place_of_b, Bytes new_place_of_a, Bytes place_of_c) const {
    PlanWriter plan{trace};
    plan.alloc(a, 0_B).run(OpId{0}).swap_out(a).drop(a).alloc(b, place_of_b).run(OpId{1}).swap_in(a, new_place_of_a);
    return plan.alloc(c, place_of_c).run(OpId{2}).free(a).free(b).plan();
  }

 private:
  Trace make(Bytes size_of_a, const std::array<Nanos, 3>& durations) {
    TraceBuilder build;
    const BufferId first = build.alloc({.size = size_of_a}), second = build.alloc({.size = 4096_B});
    const BufferId third = build.alloc({.size = 512_B});
    a = build.run({.duration = durations[0]}, {{first, Access::kWrite}})[0];
    b = build.run({.duration = durations[1]}, {{second, Access::kWrite}})[0];
    c = build.run({.duration = durations[2]}, {{first}, {second}, {third, Access::kWrite}})[2];
    build.free(first), build.free(second);
    return build.finish();
  }
};

}  // namespace tidepool::tests
