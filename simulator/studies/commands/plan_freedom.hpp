// The option --with of commands that reason about all plans.
#pragma once

#include <fmt/format.h>

#include <string>

#include "simulator/options.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

/// Actions that plans may take, apart from one run of each op of the program.
struct PlanFreedom {
  bool swap = false, remat = false, order = false;
};

/// Reads a list of "swap" and "remat" (with `may_order`, also of "order"), or "none".
/// @throws InputError  "--with: 'offload' is no kind of action; expected swap, remat, swap,remat or none"
inline PlanFreedom parse_with(const std::string& text, bool may_order = false) {
  PlanFreedom freedom;
  for (const std::string& word : split_list(text)) {
    if (word == "swap")
      freedom.swap = true;
    else if (word == "remat")
      freedom.remat = true;
    else if (word == "order" && may_order)
      freedom.order = true;
    else if (text != "none")
      throw InputError{fmt::format(
          "--with: '{}' is no kind of action; expected {}", word,
          may_order ? "some of order, swap and remat, as in order,swap, or none" : "swap, remat, swap,remat or none")};
  }
  return freedom;
}

}  // namespace tidepool
