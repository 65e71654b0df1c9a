#include "simulator/studies/advise/job_models.hpp"

#include <algorithm>

#include "traces/step/module_calls.hpp"

namespace tidepool {

std::vector<std::string> models_of(const Trace& trace) {
  std::vector<std::string> models = texts_of(trace, "models").value_or(std::vector<std::string>{});
  if (models.size() < 2) models.clear();
  return models;
}

std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models) {
  if (models.empty()) return paths;
  for (std::string& path : paths)
    if (std::none_of(models.begin() + 1, models.end(), [&](const auto& model) { return lies_in(path, model); }))
      path.insert(0, models.front() + ".");
  return paths;
}

}  // namespace tidepool
