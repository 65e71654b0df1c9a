// Ids: indices into the flat arrays of a Trace, one type for each array.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tidepool {

/// Index into one array. A default-constructed id is none.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_{static_cast<std::uint32_t>(index)} {}

  constexpr std::size_t index() const { return value_; }
  constexpr std::uint32_t value() const { return value_; }
  constexpr bool valid() const { return value_ != std::numeric_limits<std::uint32_t>::max(); }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint32_t value_ = std::numeric_limits<std::uint32_t>::max();
};

using StringId = Id<struct StringTag>;
using BufferId = Id<struct BufferTag>;
using OpId = Id<struct OpTag>;
using VersionId = Id<struct VersionTag>;
using StreamId = Id<struct StreamTag>;

}  // namespace tidepool
