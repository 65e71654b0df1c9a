#include "simulator/studies/text/interruptible.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <stop_token>
#include <utility>

#include "traces/base/text.hpp"

namespace tidepool {

namespace {

std::atomic<bool> interrupted = false;
std::atomic<int> signal_number = 0;

std::string last_word;  // a handler may only use what is there before the signal

}  // namespace

void end_with_a_word(const std::string& command) {
  last_word = command + ": interrupted; there is no answer yet\n";
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = [](int signal) {
      const ssize_t written = ::write(STDERR_FILENO, last_word.data(), last_word.size());
      static_cast<void>(written);  // without a terminal there is nobody to tell
      ::_exit(128 + signal);
    };
    sigaction(number, &action, nullptr);
  }
}

Interruptible::Interruptible() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { signal_number = number, interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &before_size_);
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGXFSZ, &before_size_, nullptr);
}

const std::atomic<bool>& Interruptible::asked() { return interrupted; }

int Interruptible::code() { return interrupted ? 128 + signal_number : 0; }

EndsAtOnce::EndsAtOnce(std::function<void()> last)
    : thread_{[last = std::move(last)](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kLook{50}, kPatience{500};
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock{mutex};
        std::chrono::milliseconds asked{0};
        while (asked < kPatience) {
          if (changed.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) return;
          if (Interruptible::asked()) asked += kLook;
        }
        last();
        std::fflush(nullptr);
        std::_Exit(Interruptible::code());
      }} {}

StillWorking::StillWorking(const std::string& command, bool on_terminal) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal && !on_terminal) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are for the thread that works
  thread_ = std::jthread{[command, terminal](const std::stop_token& stop) {
    constexpr std::chrono::seconds kFirst{2}, kNext{30};
    const std::chrono::seconds first = terminal ? kFirst : kNext;
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock{mutex};
    for (std::chrono::seconds passed{0}, wait = first;; wait = kNext - passed % kNext) {
      if (changed.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); })) return;
      passed += wait;
      say("{}: works for {} s{}\n", command, passed.count(), terminal ? "; Ctrl-C ends it" : "");
    }
  }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tidepool
