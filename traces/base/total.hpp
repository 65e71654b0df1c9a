// Sums that cannot overflow.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "traces/base/error.hpp"

namespace tidepool {

/// The sum of all sizes (or durations) of a trace. Its limit ensures that no later sum of some of them can overflow.
class Total {
 public:
  static constexpr std::int64_t kMost = std::int64_t{1} << 61;

  /// @throws InputError  "the sizes add up to more than 2305843009213693952"
  void add(std::int64_t value, std::string_view what) {
    if (value > kMost - sum_) throw InputError{fmt::format("the {} add up to more than {}", what, kMost)};
    sum_ += value;
  }

 private:
  std::int64_t sum_ = 0;
};

}  // namespace tidepool
