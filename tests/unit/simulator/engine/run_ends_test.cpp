// Every run ends, whatever a policy does, and even without an overhead limit.
#include <memory>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::run_ends_test {

namespace {

/// Drops every version that it may, before every op and every requested place.
class DropsAll final : public Policy {
 public:
  bool anticipates() const override { return true; }
  void before_run(const View& view, OpId, std::vector<Action>& out) override { drop_all(view, out); }
  void before_place(const View& view, const Request&, std::vector<Action>& out) override { drop_all(view, out); }

 private:
  static void drop_all(const View& view, std::vector<Action>& out) {
    for (std::uint32_t v = 0; v < view.trace().versions().size(); ++v)
      if (view.droppable(VersionId{v})) out.push_back({Verb::kDrop, {}, v, {}, {}});
  }
};

/// Makes room once, by a swap-out of version 0. From then on, it answers that the run shall wait for that copy.
class WaitsForEver final : public Policy {
 public:
  explicit WaitsForEver(int& answers) : answers_{answers} {}
  void make_room(const View&, const Request&, std::vector<Action>& out) override {
    out.push_back({answers_++ == 0 ? Verb::kSwapOut : Verb::kAwait, {}, 0, {}, {}});
  }

 private:
  int& answers_;
};

}  // namespace

TEST_CASE("a run that recomputes endlessly is ended by its number of reruns, not by their time") {
  if (!tests::optimised()) return;
  // Op i reads the outputs of ops i - 1 and i - 3. When the first output has been recomputed, the second has been
  // dropped again. So each output needs reruns of its own, and their number grows exponentially with i. Ops take no
  // time, so no overhead limit ends the run.
  constexpr std::int64_t kOps = 50;
  TraceBuilder build;
  std::vector<BufferId> made;
  for (std::int64_t i = 0; i < kOps; ++i) {
    std::vector<TraceBuilder::Touch> touches;
    for (std::size_t back = 1; back <= 3 && back <= made.size(); back += 2)
      touches.push_back({made[made.size() - back]});
    made.push_back(build.alloc({.size = 512_B}));
    touches.push_back({made.back(), Access::kWrite});
    build.run({}, touches);
  }
  const Trace trace = build.finish();
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<DropsAll>());
  const Result result = simulate_under(trace, {.pool = "ideal", .overhead_limit = {}}, std::move(policies), false);
  CHECK(result.outcome == Outcome::kTimeLimit);
  CHECK(result.totals.recompute_count == 1'000'000 + kOps * kOps + 1);
  CHECK_THAT(result.message, ContainsSubstring("ops have been run again 1002501 times before op"));
}

TEST_CASE("a policy that answers without making room is asked at most four times for each version") {
  // op0 reads a, which existed before | op1 writes b | op2 reads a and b. Each buffer fills the device.
  TraceBuilder build;
  const BufferId a = build.existing({.size = 512_B});
  build.run({.duration = 1_us}, {{a}});
  const BufferId b = build.alloc({.size = 512_B});
  build.run({.duration = 1_us}, {{b, Access::kWrite}});
  build.run({.duration = 1_us}, {{a}, {b}});
  const Trace trace = build.finish();
  REQUIRE(trace.versions().size() == 2);
  int answers = 0;
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<WaitsForEver>(answers));
  const RunSpec spec{.pool = "ideal", .capacity = 512_B, .machine = tests::byte_per_nano(), .overhead_limit = {}};
  const Result result = simulate_under(trace, spec, std::move(policies), true);
  CHECK(result.outcome == Outcome::kInfeasible);  // op2 needs both buffers
  CHECK(answers == 1 + 4 * 2 + 1);
}

}  // namespace tidepool::run_ends_test
