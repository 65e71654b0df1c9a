// Messages of runs that run out of memory.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::out_of_memory_test {

TEST_CASE("if two sizes in an out-of-memory message would look the same, they are given in bytes") {
  TraceBuilder build;
  const BufferId low = build.alloc({.size = 50_MiB}), high = build.alloc({.size = 50_MiB});
  build.run({.duration = 1_us}, {{low, Access::kWrite}, {high, Access::kWrite}});
  build.free(low);
  const BufferId larger = build.alloc({.size = 50_MiB + 512_B});
  build.run({.duration = 1_us}, {{larger, Access::kWrite}});
  build.run({.duration = 1_us}, {{high}, {larger}});
  const Trace trace = build.finish();
  RunSpec spec;
  spec.capacity = 100_MiB;
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOutOfMemory);
  CHECK(result.message ==
        "op 1 wants 50 MiB (52429312 B) for buffer 2; 50 MiB are held of 100 MiB, the largest hole is 50 MiB "
        "(52428800 B), and no policy makes room");
}

TEST_CASE("an out-of-memory message says what the device refused the pool") {
  // PyTorch's allocator takes 12 MiB as a segment of its own, and places 1 MiB in a segment of 2 MiB.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 12_MiB}), small = build.alloc({.size = 1_MiB});
  build.run({.duration = 1_us}, {{a, Access::kWrite}, {small, Access::kWrite}});
  const BufferId b = build.alloc({.size = 11_MiB});
  build.run({.duration = 1_us}, {{a}, {small}, {b, Access::kWrite}});
  const Trace trace = build.finish();
  RunSpec spec;
  spec.pool = "pytorch";
  spec.capacity = 24_MiB;
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOutOfMemory);
  CHECK(result.message ==
        "op 1 wants 11 MiB for buffer 2; 13 MiB are held of 24 MiB, the largest hole is 10 MiB, and no policy makes "
        "room; the device refused the pool 12 MiB: 14 MiB of 24 MiB are reserved");
}

TEST_CASE("an out-of-memory message names the module and the user's line of the op and of the buffer") {
  TraceBuilder build;
  const BufferId hidden = build.alloc({.size = 60_MiB});
  build.run({.name = build.text("aten::mm"), .module = build.text("mlp.fc1"), .line = build.text("model.py:88")},
            {{hidden, Access::kWrite}});
  RunSpec spec;
  spec.capacity = 50_MiB;
  CHECK_THAT(simulate(build.finish(), spec).message,
             Catch::Matchers::StartsWith("op 0 (aten::mm in mlp.fc1, model.py:88) wants 60 MiB for buffer 0 (mlp.fc1, "
                                         "model.py:88); 0 B are held of 50 MiB"));
}

TEST_CASE("an out-of-memory message names the module of the op and the parameter, if they are recorded") {
  TraceBuilder build;
  const BufferId weight = build.alloc({.size = 60_MiB, .name = build.text("mlp.fc1.weight")});
  build.run({.name = build.text("aten::empty"), .module = build.text("mlp.fc1"), .duration = 1_us},
            {{weight, Access::kWrite}});
  RunSpec spec;
  spec.capacity = 50_MiB;
  const Result result = simulate(build.finish(), spec);
  CHECK(result.outcome == Outcome::kInfeasible);
  CHECK_THAT(result.message,
             Catch::Matchers::StartsWith("op 0 (aten::empty in mlp.fc1) wants 60 MiB for buffer 0 (mlp.fc1.weight); "));
}

}  // namespace tidepool::out_of_memory_test
