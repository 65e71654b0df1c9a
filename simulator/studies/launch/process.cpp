#include "simulator/studies/launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "simulator/options.hpp"
#include "simulator/studies/text/interruptible.hpp"
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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kGlance{50};  // between looks at Interruptible::asked()

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The copy's part: the first byte says what the rest is.
[[noreturn]] void work_and_end(int to, const std::function<std::string()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a signal may end the program, and only the program
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  try {
    write_all(to, "=" + work());
  } catch (const InputError& error) {
    write_all(to, std::string{"i"} + error.what());
  } catch (const std::exception& error) {
    write_all(to, std::string{"e"} + error.what());
  }
  ::_exit(0);
}

/// The copy of this process. It is ended with the object, if it has not ended.
class Copy {
 public:
  explicit Copy(const std::function<std::string()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error{"advise: no pipe can be made"};
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ == 0) work_and_end(ends[1], work);
    ::close(ends[1]);
    from_ = ends[0];
    if (process_ < 0) throw std::runtime_error{"advise: no process can be made"};
  }
  ~Copy() {
    ::close(from_);
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  /// All that the copy wrote; none if it has not ended in time.
  std::optional<std::string> answer(std::chrono::milliseconds limit) {
    const Clock::time_point begin = Clock::now();
    std::string text;
    for (;;) {
      used_ = std::max(used_, time_of_processor());
      if (used_ >= limit || Clock::now() - begin >= 10 * limit || Interruptible::asked()) return {};
      pollfd ready{from_, POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(kGlance.count())) <= 0) continue;
      char bytes[1 << 16];
      const ssize_t got = ::read(from_, bytes, sizeof bytes);
      if (got <= 0) return text;
      text.append(bytes, static_cast<std::size_t>(got));
    }
  }

  /// The time of the processor that the copy has used, when answer() last looked.
  std::chrono::nanoseconds used() const { return used_; }

 private:
  std::chrono::nanoseconds time_of_processor() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  }

  pid_t process_ = -1;
  int from_ = -1;
  std::chrono::nanoseconds used_{0};
};

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

std::optional<std::string> in_time(std::chrono::milliseconds limit, const std::function<std::string()>& work,
                                   std::chrono::nanoseconds& used) {
  Copy copy{work};
  const std::optional<std::string> answer = copy.answer(limit);
  used += copy.used();
  if (!answer) return {};
  if (answer->empty()) throw std::runtime_error{"advise: the process that tried a change has died"};
  const std::string text = answer->substr(1);
  if (answer->front() == 'i') throw InputError{text};
  if (answer->front() == 'e') throw std::runtime_error{text};
  return text;
}

}  // namespace tidepool
