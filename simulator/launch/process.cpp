#include "simulator/launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr int kNotFound = 127;
constexpr std::chrono::milliseconds kPollPeriod{100};

[[noreturn]] void fail(const char* call) {
  throw std::runtime_error{fmt::format("{}: {}", call, std::strerror(errno))};
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int output, const sigset_t& mask) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  signal(SIGXFSZ, SIG_DFL);  // this program ignores it, which others need not expect
  signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
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

/// Waits for a program, and tells it once to end when `stop` says so.
int end_of(pid_t child, const std::atomic<bool>* stop) {
  for (bool told = false;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, stop == nullptr ? 0 : WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) fail("waitpid");
    if (ended < 0) continue;
    if (*stop && !std::exchange(told, true)) kill(child, SIGTERM);
    std::this_thread::sleep_for(kPollPeriod);
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, bool capture, const std::atomic<bool>* stop) {
  std::array<int, 2> ends{-1, -1};
  if (capture && pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  // Nothing may end the child before it is the other program: this one's handler would take the signal.
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  const pid_t child = fork();
  if (child == 0) become(arguments, ends[1], before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) fail("fork");
  ProcessResult result;
  if (capture) {
    close(ends[1]);
    result.said = read_all(ends[0]);
    close(ends[0]);
  }
  const int status = end_of(child, stop);
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
