// Order of a step's ops, and the memory that it needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/order/lifetimes.hpp"

namespace tidepool {

/// An order of all ops of a step that keeps the dependencies.
struct OpOrder {
  std::vector<std::uint32_t> ops;
  Bytes peak;
  std::string rule;    ///< "recorded", "least", "eager", "latest", "moved" or "exact"
  bool exact = false;  ///< no order has a lower peak
};

/// An order with its peak.
OpOrder order_of(const Lifetimes& lifetimes, std::vector<std::uint32_t> ops, std::string rule);

/// The recorded order, with lifetimes as Lifetimes has them.
OpOrder recorded_order(const Lifetimes& lifetimes);

/// No order has a lower peak: what is always alive and what one op needs while it runs.
Bytes peak_bound(const Lifetimes& lifetimes);

}  // namespace tidepool
