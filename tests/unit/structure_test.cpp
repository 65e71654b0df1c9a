// Rules of the source tree: allowed includes, lengths of files, and files at the top.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tidepool::structure_test {

namespace fs = std::filesystem;

namespace {

const fs::path kRoot{paths::source_folder()};
const std::set<std::string> kParts{"traces", "simulator", "policies", "tracer", "validator", "notebooks", "tests"};

struct Source {
  std::string path;  ///< relative to the root
  std::string part;  ///< the first folder of the path
  std::vector<std::string> lines;
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Every C++, CUDA, Python and shell file of the parts, and every .cmake file; no CMakeLists.txt.
const std::vector<Source>& sources() {
  static const std::vector<Source> kSources = [] {
    const std::set<std::string> extensions{".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".cmake"};
    std::vector<Source> found;
    for (const std::string& part : kParts) {
      if (!fs::exists(kRoot / part)) continue;
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator{kRoot / part})
        if (entry.is_regular_file() && extensions.contains(entry.path().extension().string()))
          found.push_back({fs::relative(entry.path(), kRoot).string(), part, lines_of(entry.path())});
    }
    return found;
  }();
  return kSources;
}

/// The file that a line includes, if it is one of this project; else "".
std::string included_file(const std::string& line) {
  const std::string start = "#include \"";
  if (!line.starts_with(start)) return "";
  std::string path = line.substr(start.size(), line.find('"', start.size()) - start.size());
  return kParts.contains(path.substr(0, path.find('/'))) ? path : "";
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

enum class Floor : std::uint8_t { kContracts, kEngine, kSolvers, kStudies };

/// The floor of the house on which a file stands. Policies and the validator stand on the solvers; commands, tests and
/// the Python package see everything, but not the reference of tests, which has nothing from what it checks.
Floor floor_of(const std::string& path) {
  if (path.starts_with("simulator/engine/") || path.starts_with("tests/oracle/")) return Floor::kEngine;
  if (path.starts_with("simulator/solvers/")) return Floor::kSolvers;
  if (path.starts_with("simulator/studies/")) return Floor::kStudies;
  if (path.starts_with("simulator/")) return Floor::kContracts;
  const bool answers = path.find("/commands/") != std::string::npos;
  return (path.starts_with("policies/") || path.starts_with("validator/")) && !answers ? Floor::kSolvers
                                                                                       : Floor::kStudies;
}

/// Whether a file must register a pool or a policy: every .cpp file of policies/, except planning. In a
/// folder of one pool or policy, only the file with the folder's name must.
bool registers(const std::string& path) {
  if (!path.starts_with("policies/") || !path.ends_with(".cpp")) return false;
  if (path.starts_with("policies/planning/")) return false;
  const fs::path file{path};
  const bool has_folder = std::count(path.begin(), path.end(), '/') > 2;  // policies/pool/gmlake/gmlake.cpp
  return !has_folder || file.stem() == file.parent_path().filename();
}

/// The number of characters of a line in UTF-8.
std::ptrdiff_t width(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

TEST_CASE("each part includes only headers that it may include") {
  const std::map<std::string, std::set<std::string>> may_see{
      {"traces", {"traces"}},
      {"simulator", {"traces", "simulator"}},
      {"policies", {"traces", "simulator", "policies"}},
      {"tracer", {"traces", "tracer"}},
      {"validator", {"traces", "simulator", "validator"}},
      {"notebooks", {"traces", "simulator", "validator", "notebooks"}},
      {"tests", {"traces", "simulator", "policies", "tracer", "validator", "tests"}}};
  REQUIRE(sources().size() > 20);
  for (const Source& source : sources())
    for (const std::string& line : source.lines)
      if (const std::string file = included_file(line); !file.empty()) {
        INFO(source.path << ": " << line);
        CHECK(may_see.at(source.part).contains(file.substr(0, file.find('/'))));
      }
}

TEST_CASE("no file includes a policy, and only files of a policy's folder include its parts") {
  for (const Source& source : sources())
    for (const std::string& line : source.lines)
      if (const std::string file = included_file(line); file.starts_with("policies/")) {
        INFO(source.path << ": " << line);
        CHECK(file.ends_with(".hpp"));
        const bool shared = file.starts_with("policies/planning/");
        CHECK((shared || source.part == "tests" || folder_of(source.path) == folder_of(file)));
      }
}

TEST_CASE("floors include only floors below them: contracts, engine, solvers, studies") {
  for (const Source& source : sources())
    for (const std::string& line : source.lines)
      if (const std::string file = included_file(line); !file.empty() && !file.starts_with("traces/")) {
        INFO(source.path << ": " << line);
        CHECK(floor_of(file) <= floor_of(source.path));
      }
}

TEST_CASE("the top of the simulator has few files: those to read first") {
  const auto loose = std::count_if(fs::directory_iterator{kRoot / "simulator"}, fs::directory_iterator{},
                                   [](const fs::directory_entry& entry) { return entry.is_regular_file(); });
  CHECK(loose <= 24);
}

TEST_CASE("traces/base knows no traces") {
  for (const Source& source : sources())
    if (source.path.starts_with("traces/base/"))
      for (const std::string& line : source.lines)
        if (const std::string file = included_file(line); !file.empty()) {
          INFO(source.path << ": " << line);
          CHECK(file.starts_with("traces/base/"));
        }
}

TEST_CASE("every include of this project starts at the root of the tree") {
  for (const Source& source : sources())
    for (const std::string& line : source.lines)
      if (line.starts_with("#include \"")) {
        INFO(source.path << ": " << line);
        CHECK_FALSE(included_file(line).empty());
      }
}

TEST_CASE("every header is included once") {
  for (const Source& source : sources())
    if (source.path.ends_with(".hpp")) {
      INFO(source.path);
      CHECK(std::count(source.lines.begin(), source.lines.end(), "#pragma once") == 1);
    }
}

TEST_CASE("no part prints messages in a way that ends the program if stderr cannot be written") {
  for (const Source& source : sources())
    if (source.part != "tests")
      for (const std::string& line : source.lines) {
        INFO(source.path << ": " << line);
        CHECK(line.find("fmt::print(stderr") == std::string::npos);
      }
}

TEST_CASE("every policy registers itself") {
  for (const Source& source : sources())
    if (registers(source.path)) {
      INFO(source.path);
      CHECK(std::any_of(source.lines.begin(), source.lines.end(), [](const std::string& line) {
        return line.starts_with("const RegisterPool ") || line.starts_with("const RegisterPolicy ");
      }));
    }
}

TEST_CASE("no name of a test has a semicolon, at which CTest divides it into names of no test") {
  for (const Source& source : sources())
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      if (!source.lines[i].starts_with("TEST_CASE(")) continue;
      INFO(source.path << ":" << i + 1);
      std::string name;
      for (std::size_t at = i; at < source.lines.size() && name.find("\")") == std::string::npos; ++at)
        name += source.lines[at];
      CHECK(name.substr(0, name.find("\")")).find(';') == std::string::npos);
    }
}

TEST_CASE("no file is longer than 500 lines") {
  for (const Source& source : sources()) {
    INFO(source.path);
    CHECK(source.lines.size() <= 500);
  }
}

TEST_CASE("no comment in C++ is wider than 120 columns") {  // clang-format leaves comments as they are
  std::vector<std::string> wide;
  for (const Source& source : sources()) {
    if (source.path.ends_with(".py") || source.path.ends_with(".sh") || source.path.ends_with(".cmake")) continue;
    for (std::size_t i = 0; i < source.lines.size(); ++i)
      if (width(source.lines[i]) > 120 && source.lines[i].find("//") != std::string::npos)
        wide.push_back(source.path + ":" + std::to_string(i + 1));
  }
  CHECK(wide == std::vector<std::string>{});
}

TEST_CASE("the top of the tree has the agreed entries and no other") {
  const std::set<std::string> agreed{".ci",
                                     ".clang-format",
                                     ".clang-tidy",
                                     ".git",
                                     ".github",
                                     ".gitignore",
                                     "CHANGELOG.md",
                                     "CMakeLists.txt",
                                     "CMakePresets.json",
                                     "CONTRIBUTING.md",
                                     "LICENSE",
                                     "README.md",
                                     "notebooks",
                                     "policies",
                                     "setup.sh",
                                     "simulator",
                                     "tests",
                                     "tracer",
                                     "traces",
                                     "validator"};
  const std::set<std::string> made_by_tools{".cache", "__pycache__", "compile_commands.json"};  // as in .gitignore
  for (const fs::directory_entry& entry : fs::directory_iterator{kRoot}) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("build") || made_by_tools.contains(name)) continue;
    INFO(name);
    CHECK(agreed.contains(name));
  }
}

TEST_CASE("no two headers define types with the same name in one namespace") {
  // The linker would keep one of the two, and users of the other type would run the wrong code.
  std::map<std::string, std::string> defined_in;
  for (const Source& source : sources()) {
    const bool helps_tests = source.part == "tests" && !source.path.starts_with("tests/oracle/");
    if (helps_tests || !source.path.ends_with(".hpp")) continue;
    std::string space;
    for (const std::string& line : source.lines) {
      if (line.starts_with("namespace ") && line.ends_with(" {")) space = line.substr(10, line.size() - 12) + "::";
      const bool is_struct = line.starts_with("struct "), is_class = line.starts_with("class ");
      if ((!is_struct && !is_class) || line.find('{') == std::string::npos) continue;
      const std::size_t begin = is_struct ? 7 : 6;
      const std::string name = space + line.substr(begin, line.find_first_of(" {", begin) - begin);
      const auto [found, is_new] = defined_in.try_emplace(name, source.path);
      INFO(name << " in " << source.path << " and " << found->second);
      CHECK(is_new);
    }
  }
  CHECK(defined_in.size() > 100);
}

}  // namespace tidepool::structure_test
