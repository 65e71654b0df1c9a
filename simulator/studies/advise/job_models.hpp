// The models of a job that has several.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The name of each model of the recorded job: its class; the second model of class `Net` is `Net2`. Paths of modules
/// begin with the name of their model, except those of the first model. Empty if the recording names no second model.
std::vector<std::string> models_of(const Trace& trace);

/// The paths, with the name of the first model before those of its modules; unchanged if `models` is empty.
std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models);

}  // namespace tidepool
