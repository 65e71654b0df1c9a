// The phases of tide: more effort never hurts, runs repeat, and each phase pays somewhere.
#include <fmt/format.h>

#include <string>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::phases_test {

using tidepool::tests::optimised;

namespace {

/// The time of a run with tide on an A100, with `percent` % of the sample's peak.
Nanos time_of(const char* sample, const std::string& pool, int percent, const std::string& options) {
  const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), sample));
  const RunSpec spec{.pool = pool,
                     .policy = fmt::format("tide({})", options),
                     .capacity = trace.ideal_peak() * std::int64_t{percent} / 100,
                     .machine = find_machine("a100-pcie4"),
                     .steady = true,
                     .iterations = 16};
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOk);
  return result.totals.makespan;
}

}  // namespace

TEST_CASE("more effort of tide never gives a slower plan") {
  if (!optimised()) return;
  for (const char* sample : {"bilstm", "unet"})
    for (const char* pool : {"ideal", "best-fit", "pytorch"}) {
      INFO(sample << " on " << pool);
      Nanos before = time_of(sample, pool, 60, "effort=0");
      for (const int effort : {20, 50, 100, 300}) {
        const Nanos time = time_of(sample, pool, 60, fmt::format("effort={}", effort));
        CHECK(time <= before);
        before = time;
      }
    }
}

TEST_CASE("tide finds the same plan again") {
  if (!optimised()) return;
  for (const char* pool : {"ideal", "best-fit"})
    CHECK(time_of("bilstm", pool, 60, "effort=100") == time_of("bilstm", pool, 60, "effort=100"));
}

TEST_CASE("tide finds places where quick packings of its plans are all too high") {
  if (!optimised()) return;
  CHECK(time_of("inception_v3", "best-fit", 60, "effort=0") < 71_ms);
}

TEST_CASE("tide swaps in late on a pool that fragments, and counts plans only with their places") {
  if (!optimised()) return;
  CHECK(time_of("inception_v3", "pytorch", 60, "effort=0") < 72_ms);
  CHECK(time_of("bilstm", "best-fit", 60, "effort=1000") < 31_ms);
}

TEST_CASE("each phase of tide pays on one of the bundled steps") {
  if (!optimised()) return;
  struct Row {
    const char *without, *sample, *pool;
    int percent;
  };
  for (const Row& row : {Row{"relaxation", "unet", "ideal", 40}, Row{"rounds", "bilstm", "ideal", 60},
                         Row{"later-frees", "vgg16", "ideal", 60}, Row{"limits", "gpt2", "pytorch", 40},
                         Row{"prices", "bilstm", "ideal", 40}}) {
    INFO(row.without);
    const Nanos with = time_of(row.sample, row.pool, row.percent, "effort=200"),
                without = time_of(row.sample, row.pool, row.percent, fmt::format("effort=200,without={}", row.without));
    CHECK(with < without);
  }
}

}  // namespace tidepool::phases_test
