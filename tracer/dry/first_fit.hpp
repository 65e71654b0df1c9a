// First-fit allocation of addresses.
#pragma once

#include <map>

#include "tracer/dry/address_space.hpp"

namespace tidepool::dry {

/// Free address ranges of one region [first, first + bytes). take() uses the lowest range that is large enough.
/// O(holes) per take, O(log holes) per give.
class FirstFit final : public AddressSpace {
 public:
  FirstFit(std::uint64_t first, std::uint64_t bytes) : holes_{{first, bytes}} {}

  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment) override;
  void give(std::uint64_t address, std::uint64_t bytes) override;

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;
};

}  // namespace tidepool::dry
