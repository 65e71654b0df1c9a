// Window of the job's iterations that are recorded.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidepool::cupti {

/// The correlation id of the host's call decides whether a record belongs to the window, because the device runs behind
/// the host: a skipped iteration may still be running when the window begins. Ids grow with every call, and wrap. When
/// an iteration begins kOld calls or more after the window's begin, all records from before the window are taken to
/// have come. Until one does, only the first 2^31 calls of the window are recognised.
/// boundary() is called by the job's threads, contains() also by the threads that read records.
class IterationWindow {
 public:
  /// @param skip        iterations before the first that is recorded
  /// @param iterations  the number of recorded iterations; 0 = all after the skipped ones. If both parameters are 0,
  ///                    calls before the first iteration are in the window too
  IterationWindow(std::uint64_t skip, std::uint64_t iterations) : skip_{skip}, iterations_{iterations} {
    if (skip == 0 && iterations == 0) first_ = kAlways;
  }

  /// Called when an iteration begins; later calls have ids after `last`. @return whether the iteration is inside the
  /// window
  bool boundary(std::uint32_t last) {
    const std::uint64_t number = seen_.fetch_add(1);
    if (begun() && !before(last, first_ + kOld)) first_ = kAlways;
    if (first_ != kAlways && number == skip_) first_ = kSet | (last + 1U);
    if (iterations_ != 0 && number == skip_ + iterations_ && end_ == 0) end_ = kSet | (last + 1U);
    return number >= skip_ && (iterations_ == 0 || number < skip_ + iterations_);
  }

  /// Called when the last iteration has ended: closes an open window after the call `last`.
  void close(std::uint32_t last) {
    if (begun() && !ended()) end_ = kSet | (last + 1U);
  }

  /// Whether the record of a call with this id is wanted.
  bool contains(std::uint32_t correlation) const {
    const std::uint64_t first = first_, end = end_;
    return first != 0 && (first == kAlways || !before(correlation, first)) && (end == 0 || before(correlation, end));
  }
  bool begun() const { return first_ != 0; }
  bool ended() const { return end_ != 0; }
  std::uint64_t boundaries() const { return seen_; }  ///< iterations that have begun

 private:
  static constexpr std::uint64_t kSet = 1ULL << 32, kAlways = 1ULL << 33;  ///< above the 32 bits of an id
  static constexpr std::uint64_t kOld = 1ULL << 30;
  static bool before(std::uint32_t id, std::uint64_t limit) {
    return static_cast<std::int32_t>(id - static_cast<std::uint32_t>(limit)) < 0;
  }

  std::uint64_t skip_, iterations_;
  std::atomic<std::uint64_t> seen_{0}, first_{0}, end_{0};
};

}  // namespace tidepool::cupti
