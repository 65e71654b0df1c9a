// Freed blocks that wait for the streams that still use them.
#pragma once

#include <deque>
#include <map>
#include <span>

#include "simulator/pool.hpp"

namespace tidepool {

/// The end-of-life events of PyTorch's caching allocator. If other streams have used a block that is freed, one event
/// is recorded on each of them; the block is free when all these events have completed. Each stream has a queue of
/// events. Polling a queue stops at the first event that has not completed, even if later ones have. Queues are polled
/// in the order of stream ids. PyTorch polls them in the order of a hash table; this affects only the ages of blocks
/// that the garbage collector compares. Source: c10/cuda/CUDACachingAllocator.cpp, insert_events, process_events and
/// synchronize_and_free_events.
class PendingFrees {
 public:
  /// @param uses  not empty
  void add(Bytes address, std::span<const StreamUse> uses) {
    for (const StreamUse& use : uses) queues_[use.stream].push_back({use.done, address});
    left_[address] = uses.size();
  }

  /// Calls free(Bytes address) for every block whose last event is found complete when the queues are polled at `now`.
  template <class Free>
  void poll(Nanos now, Free free) {
    for (auto queue = queues_.begin(); queue != queues_.end();) {
      std::deque<Event>& events = queue->second;
      for (; !events.empty() && events.front().done <= now; events.pop_front()) complete(events.front().address, free);
      queue = events.empty() ? queues_.erase(queue) : std::next(queue);
    }
  }

  /// Waits for all events: calls free(Bytes address) for every block.
  template <class Free>
  void finish(Free free) {
    for (const auto& [stream, events] : queues_)
      for (const Event& event : events) complete(event.address, free);
    queues_.clear();
  }

 private:
  struct Event {
    Nanos done;
    Bytes address;
  };

  template <class Free>
  void complete(Bytes address, Free& free) {
    const auto left = left_.find(address);
    if (--left->second > 0) return;
    left_.erase(left);
    free(address);
  }

  std::map<StreamId, std::deque<Event>> queues_;
  std::map<Bytes, std::size_t> left_;  // events that have not completed, by block
};

}  // namespace tidepool
