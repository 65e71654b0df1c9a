// Names of pools and policies with options that make contract tests quick.
#pragma once

#include <algorithm>
#include <string>

#include "simulator/registry.hpp"

namespace tidepool::tests {

/// The pool or policy with default options, except that a planner that searches gets little effort, or fewer stages
/// than it could handle. The tested invariants do not depend on the quality of plans.
/// @param exact  false: planners that can find the optimum of small steps do not try
template <class Info>
std::string quick_spec(const Info& info, bool exact = true) {
  const bool off = !exact && std::any_of(info.options.begin(), info.options.end(),
                                         [](const OptionInfo& option) { return option.name == "exact"; });
  for (const OptionInfo& option : info.options) {
    if (option.name == "effort") return info.name + (off ? "(effort=1,exact=off)" : "(effort=1)");
    if (option.name == "nodes") return info.name + "(nodes=10)";
    if (option.name == "saves") return info.name + "(saves=2,groups=3,stages=12)";
    if (option.name == "stages")
      return info.name + (info.name == "checkmate" || info.name == "poet" ? "(stages=2)" : "(stages=12)");
  }
  return info.name;
}

}  // namespace tidepool::tests
