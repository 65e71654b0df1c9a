// Threads that each do one thing after the other and wait for each other where told: streams and copy engines.
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

#include "traces/quantity.hpp"
#include "validator/places.hpp"

namespace tidepool {

/// One thread per lane. A lane does its jobs in order; each first waits until other lanes have come far enough.
class Lanes {
 public:
  /// A job of one lane waited for another lane, and nothing moved anywhere for as long as allowed.
  struct Stuck {
    Wait waiting;  ///< the job that waits
    Wait awaited;  ///< the job it waits for
  };

  /// @param patience  how long a lane may wait without any job ending anywhere
  Lanes(std::size_t count, Nanos patience);
  /// Ends the threads; jobs that have not begun are not done.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Adds the next job of a lane. Blocks while the lane is far behind, so that little memory is in use.
  /// @param waits  only for jobs submitted before
  void submit(std::uint32_t lane, std::vector<Wait> waits, std::function<void()> work);
  /// Waits until every job is done, or until one is stuck.
  std::optional<Stuck> finish();

 private:
  struct Job {
    std::vector<Wait> waits;
    std::function<void()> work;
  };
  void run(std::uint32_t lane);
  bool wait_for(std::unique_lock<std::mutex>& lock, std::uint32_t lane, Wait wait);

  static constexpr std::size_t kMostQueued = 256;

  const Nanos patience_;
  std::mutex mutex_;
  std::condition_variable added_, ended_;
  std::vector<std::deque<Job>> queues_;
  LaneNumbers added_count_, done_;
  std::uint64_t total_done_ = 0;
  bool stop_ = false;
  std::optional<Stuck> stuck_;
  std::vector<std::thread> threads_;
};

}  // namespace tidepool
