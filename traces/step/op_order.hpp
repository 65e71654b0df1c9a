// Order of a step's ops, and the memory that it needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/step/lifetimes.hpp"

namespace tidepool {

/// An order of all ops of a step that keeps the dependencies.
struct OpOrder {
  std::vector<std::uint32_t> ops;
  Bytes peak;
  std::string rule;    ///< the rule that made it: "recorded", "least", "eager", "latest", "moved", "exact" or another
  bool exact = false;  ///< whether it is proved that no order has a lower peak
};

/// An order with its peak.
OpOrder order_of(const Lifetimes& lifetimes, std::vector<std::uint32_t> ops, std::string rule);

/// The recorded order, with lifetimes by need (see Lifetimes).
OpOrder recorded_order(const Lifetimes& lifetimes);

/// A lower bound on the peak of every order: bytes that are always alive, plus the most that one op needs.
Bytes peak_bound(const Lifetimes& lifetimes);

}  // namespace tidepool
