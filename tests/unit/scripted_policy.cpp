#include "tests/scripted_policy.hpp"

#include <memory>

#include "simulator/registry.hpp"

namespace tidepool::tests {

std::vector<Action>& script() {
  static std::vector<Action> actions;
  return actions;
}

namespace {

/// Drafts the actions of script(). With an empty script, it takes no action.
class Scripted final : public Policy {
 public:
  std::vector<Action> plan(const Trace&, const RunSpec&) override { return script(); }
};

const RegisterPolicy kScripted{{.name = "scripted",
                                .kind = PolicyKind::kHybrid,
                                .summary = "does what a test tells it to",
                                .paper = "none",
                                .options = {},
                                .make = [](const Options&) { return std::make_unique<Scripted>(); }}};

}  // namespace
}  // namespace tidepool::tests
