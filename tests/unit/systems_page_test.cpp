// The guide's page of published systems, compared with the registered pools and policies.
#include <fstream>
#include <set>
#include <string>

#include "simulator/registry.hpp"
#include "tests/catch.hpp"

using namespace tidepool;

namespace {

/// The names in backticks in the second column of tables before "Systems that are not included".
std::multiset<std::string> names_on_page() {
  std::multiset<std::string> names;
  std::ifstream page{std::string{TIDEPOOL_SOURCE_DIR} + "/notebooks/guide/systems.md"};
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

TEST_CASE("the page of published systems names every pool and policy once, and no other") {
  std::multiset<std::string> known;
  for (const PoolInfo* info : all_pools()) known.insert(info->name);
  for (const PolicyInfo* info : all_policies())
    if (info->name != "scripted") known.insert(info->name);  // only this test program has it
  CHECK(names_on_page() == known);
}
