// The steps whose ends decide when another step of a device program may begin.
#include "validator/execution/predecessors.hpp"

#include "tests/catch.hpp"

namespace tidepool::predecessors_test {

namespace {

using Kind = DeviceCommandKind;
using Steps = std::vector<std::uint32_t>;

/// A program of five steps with three events; two lanes compute.
DeviceProgram program_of(std::vector<DeviceCommand> commands) {
  DeviceProgram program{.lanes = {2}, .commands = std::move(commands), .events = 3};
  program.steps.resize(5);
  return program;
}

Steps before(const Predecessors& predecessors, std::uint32_t step) {
  const auto found = predecessors.of(step);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("a step follows the one before it on its stream, and the events that the stream has waited for since then") {
  const Predecessors found{program_of({{Kind::kStep, 0, 0},
                                       {Kind::kStep, 0, 1},
                                       {Kind::kRecord, 0, 0},
                                       {Kind::kStep, 1, 2},
                                       {Kind::kWait, 1, 0},
                                       {Kind::kStep, 1, 3},
                                       {Kind::kStep, 1, 4}})};
  CHECK(before(found, 0) == Steps{});
  CHECK(before(found, 1) == Steps{0});
  CHECK(before(found, 2) == Steps{});
  CHECK(before(found, 3) == Steps{1, 2});
  CHECK(before(found, 4) == Steps{3});
}

TEST_CASE("an event includes the waits of its stream, and a wait for it is for its latest record") {
  const Predecessors found{program_of({{Kind::kStep, 0, 0},
                                       {Kind::kRecord, 0, 0},
                                       {Kind::kWait, 4, 0},  // upkeep has no step and only forwards waits
                                       {Kind::kRecord, 4, 1},
                                       {Kind::kWait, 1, 1},
                                       {Kind::kStep, 1, 1},
                                       {Kind::kStep, 0, 2},
                                       {Kind::kRecord, 0, 0},
                                       {Kind::kWait, 2, 0},
                                       {Kind::kStep, 2, 3},
                                       {Kind::kWait, 3, 1},
                                       {Kind::kWait, 3, 0},
                                       {Kind::kStep, 3, 4}})};
  CHECK(before(found, 1) == Steps{0});
  CHECK(before(found, 3) == Steps{2});
  CHECK(before(found, 4) == Steps{2});  // the later one of two steps of one lane
  CHECK(found.all() == Steps{0, 0, 2, 2});
}

}  // namespace tidepool::predecessors_test
