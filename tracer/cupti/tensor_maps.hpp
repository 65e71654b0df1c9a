// Tensor-map descriptors: the device address for which the 128 opaque bytes of a CUtensorMap were encoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace tidepool::cupti {

constexpr std::size_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// Descriptors that the driver encoded, found by their bytes when a launch passes one by value. At most 65,536 are
/// kept, more than an ordinary program has: beyond that, the oldest half is forgotten. Not thread-safe: callers must
/// lock.
class TensorMaps {
 public:
  void add(const std::byte* descriptor, std::uint64_t address);
  /// @return the address for which it was encoded; none if it is not known
  std::optional<std::uint64_t> find(const std::byte* descriptor) const;
  bool empty() const { return young_.empty() && old_.empty(); }

 private:
  using Descriptor = std::array<std::byte, kTensorMapBytes>;
  struct Hash {
    std::size_t operator()(const Descriptor& descriptor) const;
  };
  std::unordered_map<Descriptor, std::uint64_t, Hash> young_, old_;
};

}  // namespace tidepool::cupti
