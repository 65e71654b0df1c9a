// Advice for a job that does not fit: changes of its script, or the recording that such advice needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/advise/advise.hpp"
#include "simulator/fit/fit.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct FitAdvice {
  Bytes capacity;                     ///< bytes that are left for the step's tensors
  std::vector<Change> changes = {};   ///< the best of each kind that changes the script; none if the trace cannot say
  std::string missing = {};           ///< the reason why the trace cannot say
  std::vector<std::string> commands;  ///< that print the whole advice
};

/// The origin of a trace.
struct FitSource {
  std::string file = {};                  ///< of the trace; "" if it is not kept
  std::vector<std::string> command = {};  ///< that was recorded; empty: not known
  bool snapshot = false;                  ///< of memory, which has no operators
};

/// @return nothing if the job fits, or if it would not fit even without the step's tensors
std::optional<FitAdvice> advice_for(const Trace& trace, const Fit& fit, const FitSource& source);

/// Lines for people, the first one empty.
std::string text_of(const FitAdvice& advice);

}  // namespace tidepool
