// Names of pools and policies with options that make contract tests quick.
#pragma once

#include <string>

#include "simulator/registry.hpp"

namespace tidepool::tests {

/// The pool or policy with default options, except that a planner that searches gets little effort, or fewer stages
/// than it could handle. The tested invariants do not depend on the quality of plans.
template <class Info>
std::string quick_spec(const Info& info) {
  for (const OptionInfo& option : info.options) {
    if (option.name == "effort") return info.name + "(effort=1)";
    if (option.name == "nodes") return info.name + "(nodes=10)";
    if (option.name == "saves") return info.name + "(saves=2,groups=3,stages=12)";
    if (option.name == "stages")
      return info.name + (info.name == "checkmate" || info.name == "poet" ? "(stages=2)" : "(stages=12)");
  }
  return info.name;
}

}  // namespace tidepool::tests
