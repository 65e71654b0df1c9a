// How contract tests name a pool.
#pragma once

#include <string>

#include "simulator/registry.hpp"

namespace tidepool::tests {

/// The pool with its defaults, but with little effort where it is a planner that searches until it has spent some: the
/// invariants do not depend on how long it searches.
inline std::string quick_spec(const PoolInfo& pool) {
  for (const OptionInfo& option : pool.options)
    if (option.name == "effort") return pool.name + "(effort=1)";
  return pool.name;
}

}  // namespace tidepool::tests
