// The guide's page about published systems, compared with the registered pools and policies.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "simulator/registry.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tidepool::systems_page_test {

namespace {

/// The names in backticks in the second column of tables before "Systems that are not included".
std::multiset<std::string> names_on_page() {
  std::multiset<std::string> names;
  std::ifstream page{paths::source_folder() + "/notebooks/guide/systems.md"};
  for (std::string line; std::getline(page, line) && line != "## Systems that are not included";) {
    if (!line.starts_with("| ")) continue;
    const std::size_t first = line.find(" | "), second = line.find(" |", first + 3);
    for (std::size_t at = line.find('`', first); at < second; at = line.find('`', at)) {
      const std::size_t end = line.find('`', at + 1);
      names.insert(line.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return names;
}

}  // namespace

TEST_CASE("the page about published systems names each pool and policy at most once, and all that have a paper") {
  std::set<std::string> known, published;
  const auto add = [&](const std::string& name, const std::string& paper) {
    known.insert(name);
    if (paper != "none") published.insert(name);
  };
  for (const PoolInfo* info : all_pools()) add(info->name, info->paper);
  for (const PolicyInfo* info : all_policies())
    if (info->name != "scripted") add(info->name, info->paper);  // only this test program registers it
  const std::multiset<std::string> all = names_on_page();
  const std::set<std::string> named{all.begin(), all.end()};
  CHECK(named.size() == all.size());
  CHECK(std::includes(known.begin(), known.end(), named.begin(), named.end()));
  CHECK(std::includes(named.begin(), named.end(), published.begin(), published.end()));
}

}  // namespace tidepool::systems_page_test
