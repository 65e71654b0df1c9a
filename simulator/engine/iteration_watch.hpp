// A callback for runs of many iterations: it sees their progress, and may end them.
#pragma once

#include <functional>
#include <utility>

namespace tidepool {

/// While an object lives, the steady runs of this thread (RunSpec::steady) call it before each iteration but the first.
/// One object per thread.
class IterationWatch {
 public:
  /// @param proceed  gets the number of iterations done; if it returns false, the run ends with outcome error
  explicit IterationWatch(std::function<bool(int done)> proceed) { current() = std::move(proceed); }
  ~IterationWatch() { current() = nullptr; }
  IterationWatch(const IterationWatch&) = delete;
  IterationWatch& operator=(const IterationWatch&) = delete;

  /// Whether the run of this thread may begin another iteration.
  static bool proceed(int done) { return !current() || current()(done); }

 private:
  static std::function<bool(int)>& current() {
    thread_local std::function<bool(int)> watch;
    return watch;
  }
};

}  // namespace tidepool
