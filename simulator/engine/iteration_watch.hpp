// A callback for runs of many iterations: it sees their progress, and may end them.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "simulator/result.hpp"

namespace tidepool {

/// While an object lives, the steady runs of this thread (RunSpec::steady) call it before each iteration but the first.
/// The youngest object is called first; if it lets the run go on, so are the older ones.
class IterationWatch {
 public:
  /// Gets the costs of the iterations done. If it returns false, the run ends with outcome error.
  using Proceed = std::function<bool(std::span<const Totals> done)>;

  explicit IterationWatch(Proceed proceed) : proceed_{std::move(proceed)}, outer_{std::exchange(current(), this)} {}
  ~IterationWatch() { current() = outer_; }
  IterationWatch(const IterationWatch&) = delete;
  IterationWatch& operator=(const IterationWatch&) = delete;

  /// Whether the run of this thread may begin another iteration.
  static bool proceed(std::span<const Totals> done) {
    for (const IterationWatch* each = current(); each != nullptr; each = each->outer_)
      if (!each->proceed_(done)) return false;
    return true;
  }

 private:
  static const IterationWatch*& current() {
    thread_local const IterationWatch* watch = nullptr;
    return watch;
  }

  Proceed proceed_;
  const IterationWatch* outer_;
};

}  // namespace tidepool
