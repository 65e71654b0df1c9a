// The models of a job that has several.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The names of the models with parameters, by which a recording tells them apart: the class, and Class2 for the second
/// model of a class. Paths of modules of the first model do not begin with its name, those of the others do. Empty if
/// the recording names no second model.
std::vector<std::string> models_of(const Trace& trace);

/// The paths, each of which begins with the name of its model; as they are if `models` is empty.
std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models);

}  // namespace tidepool
