#include "simulator/engine/loss_tracking.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::loss_tracking_test {
namespace {

/// op0 reads x and y and writes m; op1 reads m and writes n.
Trace step() {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 1_B}), y = build.existing({.size = 1_B}), m = build.alloc({.size = 1_B}),
                 n = build.alloc({.size = 1_B});
  build.run({}, {{x}, {y}, {m, Access::kWrite}});
  build.run({}, {{m}, {n, Access::kWrite}});
  build.run({}, {});
  return build.finish();
}

PolicyCalls::Policies one_policy() {
  PolicyCalls::Policies policies;
  policies.push_back(std::make_unique<Policy>());
  return policies;
}

/// op2 of that step is prepared. All content is on the device.
struct AtOp2 {
  AtOp2() {
    for (VersionState& each : states) each.created = each.placed = each.filled = true;
    state(m).regenerable = state(n).regenerable = true;
  }
  VersionState& state(VersionId v) { return states[v.index()]; }
  void lose(VersionId v) {
    losses.next();
    losses.before(v);
    absent(v);
    losses.next();
    losses.after(v);
  }
  void absent(VersionId v) {
    state(v).placed = state(v).filled = false;
    losses.note_absent(v);
  }
  std::vector<VersionId> changed() {
    std::vector<VersionId> all;
    calls.view(0).drain_changes([&](VersionId v) { all.push_back(v); });
    return all;
  }

  Trace trace = step();
  VersionId x = trace.first_version(BufferId{0}), y = trace.first_version(BufferId{1}), m = trace.made(OpId{0}).front(),
            n = trace.made(OpId{1}).front();
  std::vector<VersionState> states = std::vector<VersionState>(trace.versions().size());
  PolicyCalls::Policies policies = one_policy();
  RunSpec spec;
  Nanos clock;
  std::uint32_t op = 2;
  PolicyCalls calls{policies, trace, spec, states, clock, op};
  LossTracking losses{trace, states, op, calls};
};

}  // namespace

TEST_CASE("losses of several inputs of an op change its outputs once") {
  AtOp2 run;
  run.lose(run.x);
  CHECK_FALSE(run.state(run.m).regenerable);
  CHECK(run.state(run.n).regenerable);
  CHECK(run.changed() == std::vector{run.m});
  run.lose(run.y);
  CHECK(run.changed().empty());
}

TEST_CASE("an output that has left the device is gone with the next loss of an input of its op") {
  AtOp2 run;
  run.lose(run.x);
  run.absent(run.m);
  CHECK(run.state(run.n).regenerable);
  run.lose(run.y);
  CHECK_FALSE(run.state(run.n).regenerable);
}

}  // namespace tidepool::loss_tracking_test
