#include "simulator/studies/text/interruptible.hpp"

#include <unistd.h>

#include <initializer_list>

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

}  // namespace tidepool
