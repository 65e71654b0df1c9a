// Tensor-map descriptors: which device memory the 128 opaque bytes of a CUtensorMap describe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace tidepool::cupti {

constexpr std::size_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// Descriptors as the driver encoded them, found again by their bytes when a launch passes one by value. The oldest
/// half is forgotten when there are more than a program sensibly makes. Not synchronised: callers that share it lock.
class TensorMaps {
 public:
  void add(const std::byte* descriptor, std::uint64_t address);
  /// @return the address it was encoded for
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
