// Real inputs that are not part of the repository. Tests that use them are skipped without them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/paths.hpp"
#include "tests/skip.hpp"

namespace tidepool::tests {

/// The path of a file or folder of real inputs below $TIDEPOOL_SHARED or, if this is not set, below shared/data beside
/// the source folder. If it does not exist, there is no path, and the test is noted as skipped.
inline std::optional<std::string> shared_data(const std::string& name) {
  const char* const set = std::getenv("TIDEPOOL_SHARED");
  const std::string folder = set != nullptr ? set : paths::source_folder() + "/../shared/data";
  const std::string path = folder + "/" + name;
  if (std::filesystem::exists(path)) return path;
  skip("no " + path);
  return {};
}

}  // namespace tidepool::tests
