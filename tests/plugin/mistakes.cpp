#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "simulator/registry.hpp"

namespace {

using namespace tidepool;

class Idle final : public Policy {};

/// A registration with the mistake that the environment variable MISTAKE names: name, make, nothing or start.
PolicyInfo mistaken() {
  const char* given = std::getenv("MISTAKE");
  const std::string mistake = given == nullptr ? "" : given;
  if (mistake == "start") throw std::runtime_error{"no table of costs"};
  PolicyInfo info{.name = mistake == "name" ? "a+b" : "mistake",
                  .kind = PolicyKind::kRemat,
                  .summary = "does nothing",
                  .paper = "an example of mistakes",
                  .options = {},
                  .make = [](const Options&) { return std::make_unique<Idle>(); }};
  if (mistake == "make") info.make = {};
  if (mistake == "nothing") info.make = [](const Options&) { return std::unique_ptr<Policy>{}; };
  return info;
}

const RegisterPolicy kMistake{mistaken()};

}  // namespace
