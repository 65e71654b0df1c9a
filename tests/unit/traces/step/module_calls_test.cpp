#include "traces/step/module_calls.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::module_calls_test {

namespace {

struct Ran {
  std::string module;
  Phase phase;
};

/// The calls, as in "block 0-2": the module and the positions of its call. Op i, which makes a buffer, is at 2 i + 1.
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

TEST_CASE("a module's call contains the ops of the modules in it") {
  CHECK(calls_in({{"a.x", kForward}, {"a", kForward}, {"a.y", kForward}, {"ab", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"a 0-6", "a.x 0-2", "a.y 4-6", "ab 6-8"});
}

TEST_CASE(
    "a module that is called twice in one forward pass is left out, but not if the calls are in two micro-batches") {
  CHECK(calls_in({{"a", kForward}, {"b", kForward}, {"a", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"b 2-4"});
  CHECK(calls_in(
            {{"a", kForward}, {"b", kForward}, {"b", kBackward}, {"a", kForward}, {"b", kForward}, {"b", kBackward}}) ==
        std::vector<std::string>{"a 0-2", "a 6-8", "b 2-4", "b 8-10"});
}

TEST_CASE("a forward pass is recognised even if ops without a module, for example of data, come before its modules") {
  CHECK(calls_in({{"", kForward},
                  {"a", kForward},
                  {"b", kForward},
                  {"b", kBackward},
                  {"a", kForward},
                  {"b", kForward},
                  {"b", kBackward}}) == std::vector<std::string>{"a 2-4", "a 8-10", "b 4-6", "b 10-12"});
}

TEST_CASE("a module that runs again during backward does not begin another pass, even if it is the first module") {
  CHECK(calls_in({{"a", kForward}, {"b", kForward}, {"b", kBackward}, {"a", kForward}, {"a", kBackward}}) ==
        std::vector<std::string>{"b 2-4"});
}

TEST_CASE("a forward pass after a whole backward pass, or of modules that have not run, is no second run") {
  constexpr Phase kOptimizer = Phase::kOptimizer;
  // As in a GAN: first the discriminator d; then the generator g, and d on g's detached output; then d on g's output.
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

TEST_CASE("a module whose children are all numbered is left out: it may be a list, which is never called") {
  CHECK(calls_in({{"h.0", kForward}, {"h.1.x", kForward}, {"h.1.y", kForward}, {"h.0", kBackward}}) ==
        std::vector<std::string>{"h.0 0-2", "h.1 2-6", "h.1.x 2-4", "h.1.y 4-6"});
}

TEST_CASE("a module that runs again in backward is checkpointed already, and is left out") {
  CHECK(calls_in(
            {{"a", kForward}, {"b", kForward}, {"b", kForward}, {"b", kBackward}, {"b", kForward}, {"b", kBackward}}) ==
        std::vector<std::string>{"a 0-2"});
}

TEST_CASE("two calls of a module on different batches before an optimizer step are not taken for checkpointing") {
  // The step of a GAN that makes the batch first: g, d on real data, its loss, backward, d on g's output, its loss,
  // backward.
  CHECK(calls_in({{"g", kForward},
                  {"d", kForward},
                  {"", kForward},
                  {"d", kBackward},
                  {"d", kForward},
                  {"", kForward},
                  {"d", kBackward}}) == std::vector<std::string>{"d 2-4", "d 8-10", "g 0-2"});
}

TEST_CASE("if a recording names the containers, a module with numbered children counts as called unless it is one") {
  const std::vector<Ran> ops{{"h.0", kForward}, {"h.1", kForward}, {"d.x", kForward}, {"h.0", kBackward}};
  CHECK(calls_in(ops) == std::vector<std::string>{"d 4-6", "d.x 4-6", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, R"(["d"])") == std::vector<std::string>{"d.x 4-6", "h 0-4", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, R"(["d","h"])") == std::vector<std::string>{"d.x 4-6", "h.0 0-2", "h.1 2-4"});
  CHECK(calls_in(ops, "not a list") == calls_in(ops));
}

}  // namespace tidepool::module_calls_test
