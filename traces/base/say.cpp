#include "traces/base/say.hpp"

#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <string>

#include "traces/base/utf8.hpp"

namespace tidepool {

void say_text(std::string_view text) noexcept {
  std::string shown;
  try {
    shown = printable_lines(text);  // names and messages of any origin are in it
    text = shown;
  } catch (const std::bad_alloc&) {  // then it is said as it is
  }
  sigset_t broken_pipe, pending, before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const bool lost = std::fwrite(text.data(), 1, text.size(), stderr) != text.size();
  constexpr timespec kNoWait{};
  if (lost && sigismember(&pending, SIGPIPE) == 0) sigtimedwait(&broken_pipe, nullptr, &kNoWait);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tidepool
