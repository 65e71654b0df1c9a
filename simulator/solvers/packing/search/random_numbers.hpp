// A sequence of random numbers for searches and scenarios.
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

/// Numbers that are the same on every platform (SplitMix64).
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_{seed} {}
  std::uint64_t bits() {
    const std::uint64_t bits = spread(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return bits;
  }
  /// In [0, 1).
  double next() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In [0, end).
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(next() * end); }

 private:
  std::uint64_t state_;
};

}  // namespace tidepool
