#include "simulator/studies/launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "simulator/options.hpp"
#include "traces/base/child_process.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{100};
constexpr off_t kMostSaid = 16 << 20;

[[noreturn]] void fail(const char* call) {
  throw std::runtime_error{fmt::format("{}: {}", call, std::strerror(errno))};
}

/// Closes a file descriptor; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_{number} {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

/// A file for a program's output that disappears when it is closed. A pipe would stay open as long as the program's
/// children run, and a full pipe would stop the program.
int nameless_file() {
  std::string name = (std::filesystem::temp_directory_path() / "tidepool-said-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC | O_APPEND);
  if (file < 0) fail("mkostemp");
  unlink(name.c_str());
  return file;
}

/// The last kMostSaid bytes of a file.
std::string end_of_file(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  if (size < 0) fail("lseek");
  off_t at = std::max<off_t>(0, size - kMostSaid);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; at < size; at += count) {
    count = pread(file, buffer.data(), std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(size - at)), at);
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// Waits for a program. If `stop` becomes true, sends it SIGTERM once.
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
  const Descriptor said{capture ? nameless_file() : -1};
  const pid_t child = start_child(arguments, {.environment = {},
                                              .output = said.get(),
                                              .errors = said.get(),
                                              // this program ignores SIGXFSZ, and a child would inherit that
                                              .in_child = [] { signal(SIGXFSZ, SIG_DFL); }});
  ProcessResult result;
  result.code = exit_status(end_of(child, stop));
  if (capture) result.said = end_of_file(said.get());
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
