// A device that answers an allocator's requests as a recorded trace says.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "simulator/audit/expandable_ranges.hpp"
#include "simulator/audit/report.hpp"
#include "simulator/pools/caching_allocator.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// The model did what the trace does not show, or not what it shows.
struct Mismatch {
  std::string what;
};

/// Reads the events of one malloc or empty_cache: each request of the model consumes the event that records it. A
/// request that the trace does not show where it stands is a refusal if events of a retry follow, else a Mismatch.
class SnapshotScript final : public Device {
 public:
  /// @param ranges  in the order of their begins
  SnapshotScript(const std::vector<SnapshotEvent>& events, const std::vector<ExpandableRange>& ranges,
                 DeviceAudit& audit)
      : events_{&events}, audit_{&audit} {
    for (const ExpandableRange& range : ranges)
      if (range.begun) later_[range.key].push_back(&range);
  }

  /// The model, which must exist before it asks for anything.
  void attach(CachingAllocator& model) { model_ = &model; }
  /// A segment of the start state.
  void hold(const Block& segment) { held_.add(segment, {}); }
  /// What the model is going to ask for is for blocks of `key`.
  void serve(const CachingAllocator::Key& key) { key_ = key; }

  /// The next event that says something about memory.
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
  std::map<CachingAllocator::Key, std::deque<const ExpandableRange*>> later_;  // ranges that no one has asked for yet
  std::int64_t unseen_ranges_ = 0;
};

/// "alloc of 512 B at 0x7f00", for messages.
std::string to_text(const SnapshotEvent& event);

}  // namespace tidepool
