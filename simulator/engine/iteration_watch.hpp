// Somebody who waits for a run of many iterations: sees how far it is, and may end it.
#pragma once

#include <functional>
#include <utility>

namespace tidepool {

/// While it lives, the runs of this thread ask it before each iteration but the first. One at a time in a thread.
class IterationWatch {
 public:
  /// @param proceed  gets the number of iterations done; a run ends with outcome error where it says false
  explicit IterationWatch(std::function<bool(int done)> proceed) { current() = std::move(proceed); }
  ~IterationWatch() { current() = nullptr; }
  IterationWatch(const IterationWatch&) = delete;
  IterationWatch& operator=(const IterationWatch&) = delete;

  /// Whether the run of this thread shall begin another iteration.
  static bool proceed(int done) { return !current() || current()(done); }

 private:
  static std::function<bool(int)>& current() {
    thread_local std::function<bool(int)> watch;
    return watch;
  }
};

}  // namespace tidepool
