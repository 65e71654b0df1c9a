// Threads that execute jobs in order and wait for each other. They stand for streams and copy engines.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "traces/base/quantity.hpp"
#include "validator/execution/places.hpp"

namespace tidepool {

/// One thread per lane. A lane does its jobs in order; each job first waits for given jobs of other lanes.
class Lanes {
 public:
  /// A job of one lane waited for another lane, and no job ended on any lane for the allowed time.
  struct Stuck {
    Wait waiting;  ///< the job that waits
    Wait awaited;  ///< the job it waits for
  };

  enum class Begin : std::uint8_t {
    kAtOnce,     ///< jobs begin as soon as they can
    kWhenAsked,  ///< no job begins before finish()
  };

  /// @param patience  the longest time in which a lane may wait while no job ends on any lane; a time in which the
  ///                  process is stopped does not count
  Lanes(std::size_t count, Nanos patience, Begin begin = Begin::kAtOnce);
  /// Ends the threads; jobs that have not begun are not done.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Adds the next job of a lane. With Begin::kAtOnce, blocks while the lane is far behind, which limits the memory in
  /// use.
  /// @param waits  only for jobs submitted before
  void submit(std::uint32_t lane, std::vector<Wait> waits, std::function<void()> work);
  /// Waits until every job is done, or until one is stuck.
  std::optional<Stuck> finish();

 private:
  struct Job {
    std::vector<Wait> waits;
    std::function<void()> work;
  };
  struct Lane {
    std::deque<Job> queue;
    std::uint32_t added = 0, done = 0;
    std::optional<Wait> awaits;       ///< the job that its next job must wait for
    std::condition_variable changed;  ///< tells its thread to continue
  };
  void run(std::uint32_t lane);
  bool wait_for(std::unique_lock<std::mutex>& lock, std::uint32_t lane, Wait wait);
  bool reached(Wait wait) const { return lanes_[wait.lane].done >= wait.number; }
  bool all_done() const;
  void stop();

  static constexpr std::size_t kMostQueued = 256;
  static constexpr int kParts = 100;  ///< of the patience

  const Nanos patience_;
  std::mutex mutex_;
  std::condition_variable progress_;  ///< for submit() and finish()
  std::deque<Lane> lanes_;
  std::uint64_t total_done_ = 0;
  bool begun_, stop_ = false;
  std::optional<Stuck> stuck_;
  std::vector<std::thread> threads_;
};

}  // namespace tidepool
