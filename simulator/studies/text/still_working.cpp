#include "simulator/studies/text/still_working.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stop_token>

#include "traces/base/say.hpp"

namespace tidepool {

StillWorking::StillWorking(const std::string& command) {
  if (isatty(STDERR_FILENO) == 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are for the thread that works
  thread_ = std::jthread{[command](const std::stop_token& stop) {
    constexpr std::chrono::seconds kFirst{2}, kNext{30};
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock{mutex};
    for (std::chrono::seconds passed{0}, wait = kFirst;; wait = passed == kFirst ? kNext - kFirst : kNext) {
      if (changed.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); })) return;
      passed += wait;
      say("{}: works for {} s; Ctrl-C ends it\n", command, passed.count());
    }
  }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tidepool
