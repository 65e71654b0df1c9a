// The models of a job that has several.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The name of each model of the recorded job: its class, and Class2 for the second model of a class. Paths of modules
/// begin with the name of their model, except those of the first model. Empty if the recording names no second model.
std::vector<std::string> models_of(const Trace& trace);

/// The paths, each of which begins with the name of its model; as they are if `models` is empty.
std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models);

}  // namespace tidepool
