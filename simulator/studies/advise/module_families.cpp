#include "simulator/studies/advise/module_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tidepool {
namespace {

/// A path with its numbers replaced: "transformer.h.*.mlp" for transformer.h.3.mlp.
std::string without_numbers(const std::string& path) {
  std::string pattern;
  for (std::size_t i = 0; i < path.size();) {
    const std::size_t end = std::min(path.find('.', i), path.size());
    const std::string part = path.substr(i, end - i);
    pattern += part.find_first_not_of("0123456789") == std::string::npos ? "*" : part;
    if (end < path.size()) pattern += '.';
    i = end + 1;
  }
  return pattern;
}

}  // namespace

std::vector<std::vector<std::size_t>> module_families(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    found[without_numbers(paths[i])].push_back(i);
    found[fmt::format("depth {}", std::count(paths[i].begin(), paths[i].end(), '.'))].push_back(i);
  }
  std::vector<std::vector<std::size_t>> families;
  for (auto& [pattern, family] : found) families.push_back(std::move(family));
  return families;
}

}  // namespace tidepool
