// Interface for handing out the free device addresses of one region.
#pragma once

#include <cstdint>
#include <optional>

namespace tidepool::dry {

/// The addresses of one region. Sizes in bytes.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;

  /// A free range of `bytes` whose start is a multiple of `alignment` (a power of two); none if none is large enough.
  virtual std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment) = 0;
  /// Gives back a range that take() returned, or a part of one.
  virtual void give(std::uint64_t address, std::uint64_t bytes) = 0;
};

}  // namespace tidepool::dry
