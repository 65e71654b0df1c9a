// A policy for tests that executes given actions, registered in the test program as "scripted".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"

namespace tidepool::tests {

/// The actions that the next run under the policy "scripted" drafts, sorted by the op before which they happen.
std::vector<Action>& script();

}  // namespace tidepool::tests
