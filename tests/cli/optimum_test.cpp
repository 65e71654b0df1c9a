#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"

namespace tidepool::optimum_test {

TEST_CASE("a plan in places of any size is one that validate executes") {
  const ScratchFolder scratch;
  const std::string trace = tests::write_trace(scratch, "chain", tests::chain_trace(2));
  const std::string plan = scratch.file("plan.jsonl");
  // x_0, x_1, x_2 and g_2 are there at once: four places of 1000 B.
  const ProgramResult tight = run_program({"optimum", trace, "--capacity", "4000B", "--addresses", "--plan-out", plan});
  CHECK(tight.err == "");
  CHECK_THAT(tight.out, ContainsSubstring("5 us (+0.000 %)"));
  const ProgramResult executed = run_program({"validate", plan, "--trace", trace});
  CHECK(executed.err == "");
  CHECK(executed.code == 0);
}

TEST_CASE("the search takes sizes and addresses in multiples of --alignment, as devices do") {
  const ScratchFolder scratch;
  const std::string trace = tests::write_trace(scratch, "chain", tests::chain_trace(2));
  const std::string plan = scratch.file("plan.jsonl");
  const auto search = [&](const std::string& capacity, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"optimum", trace, "--capacity", capacity, "--with", "none", "--addresses", "--alignment", "256B"});
    return run_program(more);
  };
  CHECK_THAT(search("4095B").out, ContainsSubstring("no plan exists"));
  CHECK_THAT(search("4096B", {"--plan-out", plan}).out, ContainsSubstring("5 us (+0.000 %)"));
  int placed = 0;
  for (const Action& action : read_plan(plan).plan.actions) {
    if (action.verb != Verb::kAlloc) continue;
    CHECK(action.offset.count() % 1024 == 0);
    ++placed;
  }
  CHECK(placed == 6);
  CHECK(run_program({"validate", plan, "--trace", trace}).code == 0);
}

TEST_CASE("an alignment that cannot be used is refused") {
  const ScratchFolder scratch;
  const std::string trace = tests::write_trace(scratch, "chain", tests::chain_trace(2));
  const ProgramResult without = run_program({"optimum", trace, "--capacity", "1x", "--alignment", "256B"});
  CHECK(without.code == 2);
  CHECK(without.err == "tidepool: --alignment: expected with --addresses\n");
  const ProgramResult zero = run_program({"optimum", trace, "--capacity", "1x", "--addresses", "--alignment", "0B"});
  CHECK(zero.code == 2);
  CHECK(zero.err == "tidepool: --alignment: 0 B; expected at least 1 B\n");
}

}  // namespace tidepool::optimum_test
