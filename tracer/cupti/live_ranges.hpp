// The live ranges of device memory. The recorder's launch callbacks look addresses up in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidepool::cupti {

/// Device addresses [begin, end) that one allocation or mapping owns.
struct LiveRange {
  std::uint64_t begin = 0, end = 0;
  bool before_trace = false;  ///< found through a pointer; its allocation was not seen

  bool operator==(const LiveRange&) const = default;
};

/// Disjoint ranges in address order. A look-up is a binary search, O(log ranges), in a dense array of addresses. Adding
/// and removing take O(ranges), which is fast for the hundreds to thousands of device allocations of a job. Not
/// thread-safe: callers must lock.
class LiveRanges {
 public:
  /// Makes [begin, begin + bytes) live. Removes overlapping ranges: they were freed unseen, or are segments in
  /// which the new range is a tensor. Empty ranges are ignored. @return the number of removed ranges
  std::size_t add(std::uint64_t begin, std::uint64_t bytes, bool before_trace = false);
  /// Ends the range that begins at `begin`. @return the range; none if no range begins there
  std::optional<LiveRange> remove(std::uint64_t begin);
  /// Ends the ranges that lie wholly in [begin, begin + bytes): one unmapping may end several mappings. @return their
  /// number
  std::size_t remove_within(std::uint64_t begin, std::uint64_t bytes);

  /// @return the range that holds `address`, valid until the ranges change; nullptr if there is none
  const LiveRange* find(std::uint64_t address) const;
  std::size_t size() const { return ranges_.size(); }

 private:
  std::size_t first_ending_after(std::uint64_t address) const;
  std::size_t erase(std::size_t first, std::uint64_t end);

  std::vector<std::uint64_t> ends_;  ///< ends of ranges_, for look-ups
  std::vector<LiveRange> ranges_;
};

}  // namespace tidepool::cupti
