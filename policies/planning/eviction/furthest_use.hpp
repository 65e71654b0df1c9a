// Victims by what the program will do: the version that is read again last goes first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/planning/eviction/victims.hpp"

namespace tidepool {

/// Key: the version whose next reader comes last in the program (Belady's rule); what the step hands on counts as read
/// behind its last op; what nobody reads again comes first. Of several, the one that became evictable last.
struct FurthestFirst {
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
  bool before(const FurthestFirst& other) const { return next != other.next ? next > other.next : order > other.order; }
};

}  // namespace tidepool
