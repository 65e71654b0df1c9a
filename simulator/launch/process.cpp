#include "simulator/launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr int kNotFound = 127;

[[noreturn]] void fail(const char* call) {
  throw std::runtime_error{fmt::format("{}: {}", call, std::strerror(errno))};
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  execvp(argv[0], argv.data());
  _exit(kNotFound);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, bool capture) {
  std::array<int, 2> ends{-1, -1};
  if (capture && pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) become(arguments, ends[1]);
  ProcessResult result;
  if (capture) {
    close(ends[1]);
    result.said = read_all(ends[0]);
    close(ends[0]);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("waitpid");
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.code == kNotFound) throw InputError{fmt::format("{}: not found; expected it in PATH", arguments[0])};
  return result;
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + "'";
}

}  // namespace tidepool
