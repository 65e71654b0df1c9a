// The device memory that is allocated now, as the launch callbacks of the recorder look it up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidepool::cupti {

/// Device addresses [begin, end) that one allocation or mapping owns.
struct LiveRange {
  std::uint64_t begin = 0, end = 0;
  bool before_trace = false;  ///< it was found through a pointer; its allocation was not seen

  bool operator==(const LiveRange&) const = default;
};

/// Disjoint ranges in address order. A look-up costs O(log ranges) and touches only a dense array of addresses; adding
/// and removing move what lies behind, which is cheap for the hundreds to thousands of device allocations of a job. Not
/// synchronised: callers that share it lock.
class LiveRanges {
 public:
  /// Makes [begin, begin + bytes) live. Ranges that it overlaps were freed without our seeing it (in another context,
  /// by another process, before a late start): they go, and their number is returned. Empty ranges are ignored.
  std::size_t add(std::uint64_t begin, std::uint64_t bytes, bool before_trace = false);
  /// Ends the range that begins at `begin`. @return it, or nothing if none begins there
  std::optional<LiveRange> remove(std::uint64_t begin);
  /// Ends what lies in [begin, begin + bytes): unmapping may end several mappings. @return how many ranges ended
  std::size_t remove_within(std::uint64_t begin, std::uint64_t bytes);

  /// @return the range that holds `address`, or nullptr
  const LiveRange* find(std::uint64_t address) const;
  std::size_t size() const { return ranges_.size(); }

 private:
  std::size_t first_ending_after(std::uint64_t address) const;
  std::size_t erase(std::size_t first, std::uint64_t end);

  std::vector<std::uint64_t> ends_;  ///< of ranges_, what a look-up searches
  std::vector<LiveRange> ranges_;
};

}  // namespace tidepool::cupti
