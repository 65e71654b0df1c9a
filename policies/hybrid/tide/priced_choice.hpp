// Treatments of idle intervals by a price of copies.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/hybrid/tide/step_model.hpp"
#include "policies/hybrid/tide/treatment.hpp"
#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// Chooses intervals by descending worth until the load is within all `limits`; leaves out intervals without a slot
/// above its limit. Worth is the integral over the interval of the load above the limits after earlier choices, divided
/// by its cost. The cost is the smaller of two: the time to recompute its content; or `price` ns for every copied byte
/// plus the time by which the copies exceed the interval. The cheaper treatment is chosen. Worth never rises, so it is
/// evaluated lazily: again after a sixteenth more choices. At price 0, every chosen interval that is long enough for
/// both copies is copied; at infinity, only content that cannot be recomputed is.
/// @param recompute  by interval: the costs of recomputations, or Reruns::kImpossible
/// @param start      intervals that these treatments do not keep are chosen in any case
Treatments choose_by_price(const StepModel& model, const Machine& machine, const std::vector<Nanos>& recompute,
                           double price, const SlotLimits& limits, Treatments start);

/// Prices at which choices may change: 0, and the costs of recomputations in ns per byte. At most `most` + 1 prices,
/// ascending.
std::vector<double> possible_prices(const StepModel& model, std::size_t most);

}  // namespace tidepool
