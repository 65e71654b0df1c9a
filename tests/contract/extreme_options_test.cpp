// Every option of every pool and policy, with the ends of its range and values beyond them.
#include <map>
#include <string>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/blocks_trace.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/quick_spec.hpp"
#include "traces/base/error.hpp"

namespace tidepool::extreme_options_test {

namespace {

const std::map<std::string, std::vector<const char*>> kValues{
    // by unit
    {"bytes", {"0B", "1B", "1000TB"}},
    {"ns", {"0ns", "1ns"}},
    {"number", {"0", "1", "-1", "0.5", "1e30", "-1e30", "1e-30"}},
    {"text", {"", "0", "-1", "1e30", "x"}},
    {"file", {"."}}};

/// The pool or policy with each value of each option, beside a low effort.
template <class Info>
std::vector<Spec> specs_of(const Info& info) {
  std::vector<Spec> specs;
  for (const OptionInfo& option : info.options) {
    const auto values = kValues.find(option.unit);
    if (values == kValues.end()) continue;
    for (const char* value : values->second) {
      Spec spec{tests::quick_spec(info)};
      spec.options[option.name] = value;
      spec.text = info.name + "(" + option.name + "=" + value + ")";
      specs.push_back(spec);
    }
  }
  return specs;
}

/// A run ends with a result, or its input is refused; nothing else may happen.
void check_run(const Spec& pool, const Spec& policy) {
  const Trace trace = tests::blocks_of_two(4);
  RunSpec spec{.pool = pool, .capacity = trace.ideal_peak() * 3 / 5, .machine = tests::byte_per_nano()};
  spec.policy.policies = {policy};
  INFO(pool.text << " " << policy.text);
  Outcome outcome = Outcome::kOk;
  try {
    outcome = simulate(trace, spec).outcome;
  } catch (const InputError& refusal) {
    INFO(refusal.what());
    CHECK(std::string{refusal.what()}.find(" is ") != std::string::npos);
  }
  CHECK(outcome != Outcome::kError);
}

}  // namespace

TEST_CASE("every value of an option of a policy gives a result, or is refused") {
  for (const PolicyInfo* info : all_policies())
    for (const Spec& spec : specs_of(*info)) check_run("ideal", spec);
}

TEST_CASE("every value of an option of a pool gives a result, or is refused") {
  for (const PoolInfo* info : all_pools())
    for (const Spec& spec : specs_of(*info)) check_run(spec, "lru");
}

}  // namespace tidepool::extreme_options_test
