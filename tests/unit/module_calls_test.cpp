#include "simulator/advise/module_calls.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

using namespace tidepool;

namespace {

struct Ran {
  std::string module;
  Phase phase;
};

/// "block 0-2": a module with the positions of its call. Every op makes a buffer, so that op i is at position 2 i + 1.
std::vector<std::string> calls_in(const std::vector<Ran>& ops, const std::string& containers = "") {
  TraceBuilder build;
  if (!containers.empty()) build.meta()["containers"] = containers;
  for (const Ran& ran : ops) {
    const BufferId buffer = build.alloc({.size = 8_B});
    build.run({.name = build.text("op"), .module = build.text(ran.module), .phase = ran.phase},
              {{buffer, Access::kWrite}});
  }
  std::vector<std::string> calls;
  for (const ModuleCall& call : module_calls(build.finish()))
    calls.push_back(call.module + " " + std::to_string(call.first) + "-" + std::to_string(call.behind));
  return calls;
}

constexpr Phase kForward = Phase::kForward, kBackward = Phase::kBackward;

}  // namespace

TEST_CASE("a module's call holds the ops of the modules in it") {
  CHECK(calls_in({{"a.x", kForward}, {"a", kForward}, {"a.y", kForward}, {"ab", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"a 0-6", "a.x 0-2", "a.y 4-6", "ab 6-8"});
}

TEST_CASE("a module that is called twice in a forward pass is left out, not one in each of two micro-batches") {
  CHECK(calls_in({{"a", kForward}, {"b", kForward}, {"a", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"b 2-4"});
  CHECK(calls_in(
            {{"a", kForward}, {"b", kForward}, {"b", kBackward}, {"a", kForward}, {"b", kForward}, {"b", kBackward}}) ==
        std::vector<std::string>{"a 0-2", "a 6-8", "b 2-4", "b 8-10"});
}

TEST_CASE("an op without a module in front of a micro-batch, as of its data, does not hide that a pass begins") {
  CHECK(calls_in({{"", kForward},
                  {"a", kForward},
                  {"b", kForward},
                  {"b", kBackward},
                  {"a", kForward},
                  {"b", kForward},
                  {"b", kBackward}}) == std::vector<std::string>{"a 2-4", "a 8-10", "b 4-6", "b 10-12"});
}

TEST_CASE("the first module that runs again in backward is no further pass") {
  CHECK(calls_in({{"a", kForward}, {"b", kForward}, {"b", kBackward}, {"a", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"b 2-4"});
}

TEST_CASE("a forward pass behind a backward pass that is over, or of modules that have not run, is no second run") {
  constexpr Phase kOptimizer = Phase::kOptimizer;
  // As in a GAN: the discriminator d, then the generator g with d on its detached output, then d on its output.
  const std::vector<Ran> gan{{"d", kForward},  {"d", kBackward}, {"", kOptimizer}, {"g", kForward},
                             {"d", kForward},  {"d", kBackward}, {"", kOptimizer}, {"d", kForward},
                             {"d", kBackward}, {"g", kBackward}, {"", kOptimizer}};
  CHECK(calls_in(gan) == std::vector<std::string>{"d 0-2", "d 8-10", "d 14-16", "g 6-8"});
  CHECK(calls_in({{"d", kForward}, {"d", kBackward}, {"g", kForward}, {"g", kBackward}}) ==
        std::vector<std::string>{"d 0-2", "g 4-6"});
}

TEST_CASE("a module whose output is detached has its backward in a later pass") {
  TraceBuilder build;
  const auto run = [&](const char* module, Phase phase) {
    build.run({.name = build.text("op"), .module = build.text(module), .phase = phase}, {});
  };
  for (const auto& [module, phase] : {std::pair{"g", kForward},
                                      {"d", kForward},
                                      {"d", kBackward},
                                      {"", Phase::kOptimizer},
                                      {"d", kForward},
                                      {"d", kBackward},
                                      {"g", kBackward}})
    run(module, phase);
  const Trace trace = build.finish();
  CHECK(has_several_backward_passes(trace));
  for (const ModuleCall& call : module_calls(trace)) {
    const bool later = call.module == "g" || call.first == 4;
    CHECK(call.pass.forward_end == (later ? 5 : 2));
    CHECK(call.pass.backward_end == (later ? 7 : 4));
  }
}

TEST_CASE("a module with only numbered modules may be a list, which is never called, and is left out") {
  CHECK(calls_in({{"h.0", kForward}, {"h.1.x", kForward}, {"h.1.y", kForward}, {"h.0", kBackward}}) ==
        std::vector<std::string>{"h.0 0-2", "h.1 2-6", "h.1.x 2-4", "h.1.y 4-6"});
}

TEST_CASE("a module that runs again in backward is checkpointed already and left out") {
  CHECK(calls_in(
            {{"a", kForward}, {"b", kForward}, {"b", kForward}, {"b", kBackward}, {"b", kForward}, {"b", kBackward}}) ==
        std::vector<std::string>{"a 0-2"});
}

TEST_CASE("a module that runs on another batch before an optimizer steps is not checkpointed") {
  // A GAN's step that makes the batch first: g, d on real data, backward, d on what g made, its loss, backward.
  CHECK(calls_in({{"g", kForward},
                  {"d", kForward},
                  {"", kForward},
                  {"d", kBackward},
                  {"d", kForward},
                  {"", kForward},
                  {"d", kBackward}}) == std::vector<std::string>{"d 2-4", "d 8-10", "g 0-2"});
}

TEST_CASE("a module of numbered ones is called unless the recording names it as a container") {
  const std::vector<Ran> ops{{"h.0", kForward}, {"h.1", kForward}, {"d.x", kForward}, {"h.0", kBackward}};
  CHECK(calls_in(ops) == std::vector<std::string>{"d 4-6", "d.x 4-6", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, R"(["d"])") == std::vector<std::string>{"d.x 4-6", "h 0-4", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, R"(["d","h"])") == std::vector<std::string>{"d.x 4-6", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, "not a list") == calls_in(ops));
}
