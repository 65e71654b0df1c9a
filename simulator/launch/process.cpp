#include "simulator/launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "simulator/options.hpp"
#include "traces/child_process.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{100};

[[noreturn]] void fail(const char* call) {
  throw std::runtime_error{fmt::format("{}: {}", call, std::strerror(errno))};
}

/// Closes a descriptor, if it is one.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_{number} {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

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
  const Descriptor from{ends[0]};
  Descriptor to{ends[1]};
  const pid_t child = start_child(arguments, {.environment = {},
                                              .output = to.get(),
                                              .errors = to.get(),
                                              // this program ignores it, which others need not expect
                                              .in_child = [] { signal(SIGXFSZ, SIG_DFL); }});
  to.close();
  ProcessResult result;
  if (capture) result.said = read_all(from.get());
  result.code = exit_status(end_of(child, stop));
  return result;
}

void require_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split_list(path ? path : "", ':'))
    if (::access(fmt::format("{}/{}", folder.empty() ? "." : folder, name).c_str(), X_OK) == 0) return;
  throw InputError{fmt::format("{}: cannot be run: {}", name, std::strerror(ENOENT))};
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + "'";
}

}  // namespace tidepool
