#include "simulator/studies/advise/limited_work.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

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
