#include "validator/lanes.hpp"

#include <chrono>
#include <utility>

namespace tidepool {

Lanes::Lanes(std::size_t count, Nanos patience)
    : patience_{patience}, queues_(count), added_count_(count), done_(count) {
  for (std::uint32_t lane = 0; lane < count; ++lane) threads_.emplace_back([this, lane] { run(lane); });
}

Lanes::~Lanes() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  added_.notify_all();
  ended_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::submit(std::uint32_t lane, std::vector<Wait> waits, std::function<void()> work) {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return queues_[lane].size() < kMostQueued || stop_; });
  queues_[lane].push_back({std::move(waits), std::move(work)});
  ++added_count_[lane];
  lock.unlock();
  added_.notify_all();
}

std::optional<Lanes::Stuck> Lanes::finish() {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return stop_ || done_ == added_count_; });
  return stuck_;
}

bool Lanes::wait_for(std::unique_lock<std::mutex>& lock, std::uint32_t lane, Wait wait) {
  const auto patience = std::chrono::nanoseconds{patience_.count()};
  while (done_[wait.lane] < wait.number && !stop_) {
    const std::uint64_t before = total_done_;
    const auto reached = [&] { return done_[wait.lane] >= wait.number || stop_ || total_done_ != before; };
    if (ended_.wait_for(lock, patience, reached)) continue;
    stuck_ = Stuck{{lane, done_[lane] + 1}, wait};
    stop_ = true;
    added_.notify_all();
    ended_.notify_all();
  }
  return !stop_;
}

void Lanes::run(std::uint32_t lane) {
  std::unique_lock lock{mutex_};
  while (true) {
    added_.wait(lock, [&] { return stop_ || !queues_[lane].empty(); });
    if (stop_) return;
    const Job job = std::move(queues_[lane].front());
    queues_[lane].pop_front();
    for (const Wait wait : job.waits)
      if (!wait_for(lock, lane, wait)) return;
    lock.unlock();
    job.work();
    lock.lock();
    ++done_[lane];
    ++total_done_;
    ended_.notify_all();
  }
}

}  // namespace tidepool
