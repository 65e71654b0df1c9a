#include "simulator/result.hpp"

#include <fmt/format.h>

#include "traces/base/error.hpp"

namespace tidepool {

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kOutOfMemory:
      return "out_of_memory";
    case Outcome::kInfeasible:
      return "infeasible";
    case Outcome::kTimeLimit:
      return "time_limit";
    case Outcome::kError:
      return "error";
  }
  return "error";
}

Outcome find_outcome(std::string_view text) {
  for (const Outcome outcome :
       {Outcome::kOk, Outcome::kOutOfMemory, Outcome::kInfeasible, Outcome::kTimeLimit, Outcome::kError})
    if (to_text(outcome) == text) return outcome;
  throw InputError{fmt::format("no outcome named '{}'", text)};
}

}  // namespace tidepool
