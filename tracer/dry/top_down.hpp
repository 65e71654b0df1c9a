// Allocation of addresses in chunks from the top down.
#pragma once

#include <map>

#include "tracer/dry/address_space.hpp"

namespace tidepool::dry {

/// Places memory as two real devices under Linux did. A request that fits at the begin of a hole gets the begin of the
/// lowest such hole. Any other request gets adjacent whole chunks of 32 MiB, the highest free ones, and the rest of
/// its last chunk becomes a hole. The rule follows the histories of PyTorch's allocator on these devices (an H100, and
/// one without a name): most segments in new chunks lay right below the previous segment, and most other segments lay
/// in the lowest hole. O(holes + chunks) per take.
class TopDown final : public AddressSpace {
 public:
  static constexpr std::uint64_t kChunk = std::uint64_t{32} << 20;

  /// Hands out the whole chunks of the region [first, first + bytes).
  TopDown(std::uint64_t first, std::uint64_t bytes);

  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment) override;
  void give(std::uint64_t address, std::uint64_t bytes) override;

 private:
  std::optional<std::uint64_t> take_hole(std::uint64_t bytes, std::uint64_t alignment);
  std::optional<std::uint64_t> take_chunks(std::uint64_t bytes, std::uint64_t alignment);
  void count(std::uint64_t address, std::uint64_t bytes);
  void give_within_chunk(std::uint64_t address, std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> unused_;  ///< runs of whole free chunks: bytes by address
  std::map<std::uint64_t, std::uint64_t>
      holes_;  ///< free parts of chunks in use: bytes by address; none crosses the end of a chunk
  std::map<std::uint64_t, std::uint64_t> in_use_;  ///< bytes in use by address of the chunk
};

}  // namespace tidepool::dry
