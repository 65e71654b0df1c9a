// Runs of the program as a user starts it, for tests of the command line.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/paths.hpp"

namespace tidepool {

/// A folder for one test, removed with its content at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tidepool-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error{"no folder for a test's files: " + name};
    path_ = name;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The content of a file; "" if there is none.
inline std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return std::string{std::istreambuf_iterator<char>{file}, {}};
}

struct ProgramResult {
  int code = 0;     ///< exit code; if a signal ended the program, 128 + its number, or -1 with some shells
  std::string out;  ///< stdout
  std::string err;  ///< stderr
};

/// Runs `tidepool` with arguments, each passed on unchanged.
inline ProgramResult run_program(const std::vector<std::string>& arguments) {
  const auto quoted = [](const std::string& text) {
    std::string result = "'";
    for (const char c : text) c == '\'' ? result += "'\\''" : result += c;
    return result + "'";
  };
  const ScratchFolder scratch;
  std::string line = quoted(paths::program());
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  line += " >" + quoted(scratch.file("out")) + " 2>" + quoted(scratch.file("err")) + " </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(scratch.file("out")),
          content_of(scratch.file("err"))};
}

}  // namespace tidepool
