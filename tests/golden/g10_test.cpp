// g10 and flashneuron on the steps that the authors of G10 published.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/window.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::g10_test {

using tidepool::tests::shared_data;

TEST_CASE("on BERT, g10 takes at least the time of the bound, and at most that of its authors' simulator") {
  struct Line {
    int batch;
    Nanos time;        // of an iteration at 40 GiB
    double bound;      // s, if every copy is made anew
    double simulated;  // s, by their simulator with an SSD as fast as the host, but of 3.2 GiB/s at batch 256
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

TEST_CASE("on BERT, flashneuron takes 5 % less time than its model by G10's authors") {
  const auto path = shared_data("g10/bert256_kernels.config.gz");
  if (!path) return;
  Machine machine = find_machine("g10-a100");
  machine.h2d = machine.d2h = Link{parse_rate("3.2GiB/s"), 0_ns};  // of their SSD
  const RunSpec spec{
      .pool = "two-ended", .policy = "flashneuron(wait=on)", .capacity = 40_GiB, .machine = std::move(machine)};
  const Result result = simulate(load_trace(*path), spec);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == 9'715'330'701_ns);  // theirs: 10215.5 ms
}

namespace {

/// A step by the assumptions of G10's authors. Buffers from before the step are live throughout, all others from first
/// to last use. In every idle interval, the buffer is copied out and back, whether its content is needed or not.
Absences copied_anew(const Trace& trace) {
  const auto n = static_cast<std::int64_t>(trace.ops().size());
  Absences step{{0_ns}, std::vector<Bytes>(trace.ops().size()), {}};
  for (const Op& op : trace.ops()) step.starts.push_back(step.starts.back() + op.duration);
  std::vector<std::vector<std::int64_t>> uses(trace.buffers().size());
  for (std::int64_t k = 0; k < n; ++k)
    for (const Use& use : trace.uses(OpId{static_cast<std::size_t>(k)})) {
      const VersionId touched = use.in.valid() ? use.in : use.out;
      uses[trace.version(trace.root(touched)).buffer.index()].push_back(k);
    }
  for (std::size_t b = 0; b < uses.size(); ++b) {
    if (uses[b].empty()) continue;
    const Buffer& buffer = trace.buffers()[b];
    const std::int64_t first = uses[b].front(), last = uses[b].back();
    for (std::int64_t k = buffer.born_before ? 0 : first; k < (buffer.born_before ? n : last + 1); ++k)
      step.load[static_cast<std::size_t>(k)] += buffer.size;
    if (buffer.born_before) uses[b].push_back(first + n);
    const OpId producer = buffer.born_before ? OpId{} : OpId{static_cast<std::size_t>(first)};
    for (std::size_t i = 1; i < uses[b].size(); ++i)
      if (const std::int64_t from = uses[b][i - 1] + 1, due = uses[b][i]; from < due)
        step.absences.push_back({VersionId{}, buffer.size, from, due, from, due, producer, BufferId{b}});
  }
  return step;
}

}  // namespace

TEST_CASE("window bounds on BERT equal a linear program's to three decimals if every copy is made anew") {
  struct Line {
    int batch, gibibytes;
    double swap;                   // time in s for which ops wait for copies
    std::optional<double> hybrid;  // the same if ops may run again; the time of reruns counts too
  };
  const double rate = static_cast<double>(find_machine("g10-a100").h2d.rate.count()) / 1e9;
  for (const Line& line : {Line{256, 40, 0, {}}, Line{256, 30, 0.379, {}}, Line{256, 20, 1.014, {}},
                           Line{512, 40, 2.192, 0.054}, Line{512, 30, 2.827, 0.094}, Line{512, 20, 3.461, 0.137}}) {
    const auto path = shared_data(fmt::format("g10/bert{}_kernels.config.gz", line.batch));
    if (!path) return;
    INFO(fmt::format("BERT-{} at {} GiB", line.batch, line.gibibytes));
    const Absences step = copied_anew(load_trace(*path));
    WindowQuery query{.capacity = 1_GiB * line.gibibytes, .out_rate = rate, .in_rate = rate, .repeats = true};
    const auto stall = [&] { return window_bound(step, query).stall / 1e9; };
    CHECK(std::abs(stall() - line.swap) < 0.0005);
    query.remat = true;
    if (line.hybrid) CHECK(std::abs(stall() - *line.hybrid) < 0.0005);
  }
}

}  // namespace tidepool::g10_test
