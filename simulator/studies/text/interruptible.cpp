#include "simulator/studies/text/interruptible.hpp"

namespace tidepool {
namespace {

std::atomic<bool> interrupted = false;
std::atomic<int> signal_number = 0;

}  // namespace

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
