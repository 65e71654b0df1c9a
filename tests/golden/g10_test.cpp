// g10 and flashneuron on the steps that the authors of G10 published.
#include <fmt/format.h>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/importer.hpp"

using namespace tidepool;
using tidepool::tests::shared_data;

TEST_CASE("g10 is between the bound and what its authors' simulator says of BERT if the SSD is as fast as the host") {
  struct Line {
    int batch;
    Nanos time;        // of an iteration at 40 GiB
    double bound;      // s, if every copy is made anew
    double simulated;  // s, by their simulator; at batch 256 with their SSD of 3.2 GB/s
  };
  for (const Line& line : {Line{256, 7'285'466'083_ns, 7.285, 7.311}, Line{512, 12'913'265'831_ns, 12.025, 13.313}}) {
    const auto path = shared_data(fmt::format("g10/bert{}_kernels.config.gz", line.batch));
    if (!path) return;
    INFO(fmt::format("BERT-{}", line.batch));
    const RunSpec spec{
        .pool = "ideal", .policy = "g10", .capacity = 40_GiB, .machine = find_machine("g10-a100"), .iterations = 4};
    const Result result = simulate(load_trace(*path), spec);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.makespan == line.time);
    const double seconds = static_cast<double>(result.totals.makespan.count()) / 1e9;
    CHECK(seconds >= line.bound);
    CHECK(seconds <= line.simulated);
  }
}

TEST_CASE("flashneuron takes 5 % less time than G10's authors' model of it does on BERT") {
  const auto path = shared_data("g10/bert256_kernels.config.gz");
  if (!path) return;
  Machine machine = find_machine("g10-a100");
  machine.h2d = machine.d2h = Link{parse_rate("3.2GiB/s"), 0_ns};  // of their SSD
  const RunSpec spec{
      .pool = "two-ended", .policy = "flashneuron(wait=on)", .capacity = 40_GiB, .machine = std::move(machine)};
  const Result result = simulate(load_trace(*path), spec);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == 9'715'330'773_ns);  // theirs: 10215.5 ms
}
