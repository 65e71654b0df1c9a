// Messages of runs that run out of memory.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

using namespace tidepool;

TEST_CASE("sizes of an out-of-memory message that would read the same are told apart by their bytes") {
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
        "op 1 () wants 50 MiB (52429312 B) for buffer 2; 50 MiB are held of 100 MiB, the largest hole is 50 MiB "
        "(52428800 B), and no policy makes room");
}
