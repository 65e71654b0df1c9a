// A policy for tests that does what it is told, registered in the test program as "scripted".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"

namespace tidepool::tests {

/// The actions that the next run under the policy "scripted" drafts, by the op in front of which they are done.
std::vector<Action>& script();

}  // namespace tidepool::tests
