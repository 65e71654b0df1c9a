// Victims by the rest of the program: the version with the latest next read is evicted first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/planning/eviction/victims.hpp"

namespace tidepool {

/// Key: the version whose next reader comes last in the program (Belady's rule). A version that no later op reads
/// counts as read after the last op if its buffer outlives the step; otherwise it comes first of all. Ties: the one
/// that became evictable last.
struct FurthestFirst {
  static constexpr const char* kScore = "next reader, op";
  std::uint32_t next = 0;
  std::uint32_t order = 0;
  FurthestFirst() = default;
  FurthestFirst(const View& view, VersionId v) : order{view.state(v).order} {
    const std::span readers = view.trace().readers(v);
    const auto reader = std::upper_bound(readers.begin(), readers.end(), view.op());
    const Buffer& buffer = view.trace().buffer(view.trace().version(v).buffer);
    const auto ops = static_cast<std::uint32_t>(view.trace().ops().size());
    next = reader != readers.end() ? reader->value() : buffer.outlives ? ops : ops + 1;
  }
  double score() const { return next; }
  bool before(const FurthestFirst& other) const { return next != other.next ? next > other.next : order > other.order; }
};

}  // namespace tidepool
