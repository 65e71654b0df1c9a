// One version: programs, packages and the changelog name the same release.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tidepool::release_test {

namespace {

/// Searches the file at `path` below the root for the first line that matches `pattern`, and returns what the pattern's
/// only group matches there; "" if no line matches.
std::string first_match(const std::string& path, const std::string& pattern) {
  std::ifstream file{std::filesystem::path{paths::source_folder()} / path};
  const std::regex expression{pattern};
  std::smatch match;
  for (std::string line; std::getline(file, line);)
    if (std::regex_search(line, match, expression)) return match[1];
  return "";
}

}  // namespace

TEST_CASE("programs, packages and the changelog name one version") {
  const std::vector<std::pair<std::string, std::string>> places{
      {"CMakeLists.txt", R"(^project\(tidepool VERSION ([0-9.]+))"},
      {"notebooks/pyproject.toml", R"(^version = "([0-9.]+)\")"},
      {"tracer/torch/pyproject.toml", R"(^version = "([0-9.]+)\")"},
      {"tracer/torch/tidepool_torch/__init__.py", R"(^__version__ = "([0-9.]+)\")"},
      {"validator/live/tidepool_live/__init__.py", R"(^__version__ = "([0-9.]+)\")"},
      {"CHANGELOG.md", R"(^## ([0-9.]+))"},
  };
  for (const auto& [path, pattern] : places) {
    INFO(path);
    CHECK(first_match(path, pattern) == TIDEPOOL_VERSION);
  }
}

}  // namespace tidepool::release_test
