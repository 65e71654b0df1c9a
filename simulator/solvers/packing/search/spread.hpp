// Numbers that look random but depend on their argument only.
#pragma once

#include <cstdint>

namespace tidepool {

/// Spreads the bits of a number, one to one: the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
constexpr std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace tidepool
