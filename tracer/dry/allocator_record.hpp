// What a framework's allocator said of its memory, and how much of the device its tensors held.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tidepool::dry {

/// The most bytes of a program's life. The allocator reports allocated and reserved bytes with each tensor. The held
/// bytes are those of segments (or mapped pages) with tensors: a cached segment without tensors can be given back if
/// memory runs out, so that a program may need less than it reserved. The segments of captured graphs stay held.
class AllocatorRecord {
 public:
  struct Failure {
    std::uint64_t requested = 0;  ///< bytes of the request
    std::uint64_t allocated = 0;  ///< bytes of the tensors that were alive
  };

  void said(std::uint64_t allocated, std::uint64_t reserved) {
    most_allocated_ = std::max(most_allocated_, allocated);
    most_reserved_ = std::max(most_reserved_, reserved);
  }
  void failed(const Failure& failure) {
    ++failures_;
    if (failures_ == 1 || failure.requested + failure.allocated > failure_.requested + failure_.allocated)
      failure_ = failure;
  }

  /// A tensor begins or ends in a segment. @param stays  the segment counts as held until it is freed
  void tensor_begins(std::uint64_t segment, std::uint64_t bytes, bool stays) {
    Segment& found = segments_[segment];
    if (found.tensors++ == 0 && !found.stays) hold(found.bytes = bytes);
    found.stays = found.stays || stays;
  }
  void tensor_ends(std::uint64_t segment) {
    const auto found = segments_.find(segment);
    if (found != segments_.end() && --found->second.tensors == 0 && !found->second.stays) drop(found);
  }
  void segment_ends(std::uint64_t segment) {
    ++freed_;
    if (const auto found = segments_.find(segment); found != segments_.end()) drop(found);
  }

  std::uint64_t most_allocated() const { return most_allocated_; }
  std::uint64_t most_reserved() const { return most_reserved_; }  ///< 0: no allocator has reported
  std::uint64_t most_held() const { return most_held_; }
  std::uint64_t freed_segments() const { return freed_; }
  std::uint64_t failures() const { return failures_; }
  /// The failure with the most bytes in all.
  const Failure& failure() const { return failure_; }

 private:
  struct Segment {
    std::uint64_t bytes = 0, tensors = 0;
    bool stays = false;
  };

  void hold(std::uint64_t bytes) {
    held_ += bytes;
    most_held_ = std::max(most_held_, held_);
  }
  void drop(std::unordered_map<std::uint64_t, Segment>::iterator segment) {
    held_ -= segment->second.bytes;
    segments_.erase(segment);
  }

  std::uint64_t most_allocated_ = 0, most_reserved_ = 0, held_ = 0, most_held_ = 0, freed_ = 0, failures_ = 0;
  Failure failure_;
  std::unordered_map<std::uint64_t, Segment> segments_;  ///< with tensors, by address
};

}  // namespace tidepool::dry
