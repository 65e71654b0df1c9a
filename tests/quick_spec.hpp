// Names of pools and policies with options that make contract tests quick.
#pragma once

#include <string>

#include "simulator/registry.hpp"

namespace tidepool::tests {

/// The pool or policy with its defaults, but with little effort where it is a planner that searches until it has spent
/// some, or with fewer stages than it can afford: the invariants do not depend on how well it plans.
template <class Info>
std::string quick_spec(const Info& info) {
  for (const OptionInfo& option : info.options) {
    if (option.name == "effort") return info.name + "(effort=1)";
    if (option.name == "nodes") return info.name + "(nodes=100)";
    if (option.name == "stages") return info.name + (info.name == "checkmate" ? "(stages=2)" : "(stages=12)");
  }
  return info.name;
}

}  // namespace tidepool::tests
