// Addresses handed out lowest first, as a driver's virtual address space does it closely enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tidepool::dry {

/// Free address ranges of one region [first, first + bytes). O(holes) per take, O(log holes) per give.
class FirstFit {
 public:
  FirstFit(std::uint64_t first, std::uint64_t bytes) : holes_{{first, bytes}} {}

  /// The lowest free range of `bytes` whose start is a multiple of `alignment` (a power of two); none if no hole fits.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment);
  /// Gives back a range that take() returned, or a part of one.
  void give(std::uint64_t address, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;
};

}  // namespace tidepool::dry
