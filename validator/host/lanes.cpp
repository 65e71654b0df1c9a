#include "validator/host/lanes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tidepool {

Lanes::Lanes(std::size_t count, Nanos patience, Begin begin)
    : patience_{patience}, lanes_(count), begun_{begin == Begin::kAtOnce} {
  for (std::uint32_t lane = 0; lane < count; ++lane) threads_.emplace_back([this, lane] { run(lane); });
}

Lanes::~Lanes() {
  {
    const std::lock_guard lock{mutex_};
    stop();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::stop() {
  stop_ = true;
  for (Lane& lane : lanes_) lane.changed.notify_one();
  progress_.notify_one();
}

void Lanes::submit(std::uint32_t number, std::vector<Wait> waits, std::function<void()> work) {
  Lane& lane = lanes_[number];
  std::unique_lock lock{mutex_};
  progress_.wait(lock, [&] { return !begun_ || lane.queue.size() < kMostQueued || stop_; });
  lane.queue.push_back({std::move(waits), std::move(work)});
  ++lane.added;
  if (begun_ && !lane.awaits) lane.changed.notify_one();
}

bool Lanes::all_done() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.done == lane.added; });
}

std::optional<Lanes::Stuck> Lanes::finish() {
  std::unique_lock lock{mutex_};
  begun_ = true;
  for (Lane& lane : lanes_) lane.changed.notify_one();
  progress_.wait(lock, [&] { return stop_ || all_done(); });
  return stuck_;
}

bool Lanes::wait_for(std::unique_lock<std::mutex>& lock, std::uint32_t number, Wait wait) {
  Lane& lane = lanes_[number];
  lane.awaits = wait;
  // Patience is counted in parts: if the process is stopped (SIGSTOP, Ctrl-Z) for long, only one of them passes.
  const auto part = std::chrono::nanoseconds{patience_.count()} / kParts;
  std::uint64_t before = total_done_;
  for (int passed = 0; !lane.changed.wait_for(lock, part, [&] { return reached(wait) || stop_; });) {
    passed = total_done_ == before ? passed + 1 : 0;
    before = total_done_;
    if (passed < kParts) continue;
    stuck_ = Stuck{{number, lane.done + 1}, wait};
    stop();
  }
  lane.awaits.reset();
  return !stop_;
}

void Lanes::run(std::uint32_t number) {
  std::unique_lock lock{mutex_};
  Lane& lane = lanes_[number];
  while (true) {
    lane.changed.wait(lock, [&] { return stop_ || (begun_ && !lane.queue.empty()); });
    if (stop_) return;
    const Job job = std::move(lane.queue.front());
    lane.queue.pop_front();
    for (const Wait wait : job.waits)
      if (!wait_for(lock, number, wait)) return;
    lock.unlock();
    job.work();
    lock.lock();
    ++lane.done;
    ++total_done_;
    for (Lane& other : lanes_)
      if (other.awaits && other.awaits->lane == number && reached(*other.awaits)) other.changed.notify_one();
    if (lane.queue.empty() || lane.queue.size() == kMostQueued - 1) progress_.notify_one();
  }
}

}  // namespace tidepool
