// Device that answers an allocator's requests according to a recorded log.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/audit/expandable_ranges.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// A difference between the model's requests and the log.
struct Mismatch {
  std::string what;
};

/// Answers the model's requests during a malloc or an empty_cache: each request consumes the event that records it. If
/// the next event does not record the request, but the events of a retry follow, the request is refused. If they do not
/// follow, the call throws Mismatch.
class SnapshotScript final : public Device {
 public:
  /// @param ranges  in the order in which they begin
  SnapshotScript(const std::vector<SnapshotEvent>& events, const std::vector<ExpandableRange>& ranges,
                 DeviceAudit& audit)
      : events_{&events}, audit_{&audit} {
    for (const ExpandableRange& range : ranges)
      if (range.begun) later_[range.key].push_back(&range);
  }

  /// Sets the model; call before its first request.
  void attach(CachingAllocator& model) { model_ = &model; }
  /// Adds a segment of the start state.
  void hold(const Block& segment) { held_.add(segment, {}); }
  /// Sets the key of the blocks for which the model makes the next requests.
  void serve(const CachingAllocator::Key& key) { key_ = key; }

  /// The position of the next event about memory.
  std::size_t position();
  void go_to(std::size_t position) { position_ = position; }

  std::optional<Bytes> reserve(Bytes size) override;
  void release(Bytes address, Bytes size) override;
  Bytes reserve_addresses(Bytes size) override;
  void release_addresses(Bytes /*address*/, Bytes /*size*/) override {}
  bool map(Bytes address, Bytes size, Bytes page) override;
  void unmap(Bytes address, Bytes size, Bytes /*page*/) override { release(address, size); }

 private:
  const SnapshotEvent* next(SnapshotAction action);
  std::string shown();
  bool refused();
  void take(Bytes address, Bytes size);

  const std::vector<SnapshotEvent>* events_;
  DeviceAudit* audit_;
  CachingAllocator* model_ = nullptr;
  std::size_t position_ = 0;
  MemoryPieces<std::monostate> held_;  // mapped memory
  CachingAllocator::Key key_;
  std::map<CachingAllocator::Key, std::deque<const ExpandableRange*>> later_;  // ranges not reserved yet
  std::int64_t unseen_ranges_ = 0;
};

/// "alloc of 512 B at 0x7f00", for messages.
std::string to_text(const SnapshotEvent& event);

}  // namespace tidepool
