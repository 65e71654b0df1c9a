// What a plan does with each idle interval of a step.
#pragma once

#include <cstdint>
#include <vector>

namespace tidepool {

/// The treatment of an idle interval.
enum class How : std::uint8_t { kKept, kCopied, kDropped };

/// By idle interval of StepModel::gaps.
using Treatments = std::vector<How>;

}  // namespace tidepool
