// Advice for a job that does not fit: changes of its script, or the recording that such advice needs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/advise/advise.hpp"
#include "simulator/studies/fit/fit.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct FitAdvice {
  Bytes capacity;                     ///< bytes that are left for the step's tensors
  std::vector<Change> changes = {};   ///< the best change of each kind; none if the trace lacks data for advice
  bool complete = true;               ///< false: not all kinds of changes were tried within kAdviceBeside
  std::string missing = {};           ///< the data that the trace lacks, as a sentence; "" if it lacks none
  std::vector<std::string> commands;  ///< to get the whole advice, in this order
};

/// The origin of a trace.
struct FitSource {
  std::string file = {};                  ///< path of the trace; "" if the trace is in no file
  std::vector<std::string> command = {};  ///< the recorded command; empty: not known
  bool snapshot = false;                  ///< the trace is a snapshot of memory, which has no operators
};

/// @return  none if the job fits, or if it would not fit even without the step's tensors
std::optional<FitAdvice> advice_for(const Trace& trace, const Fit& fit, const FitSource& source);

/// Lines for people, the first one empty.
std::string text_of(const FitAdvice& advice);

/// The advice as the value of the key "advice".
nlohmann::ordered_json to_json(const FitAdvice& advice);

}  // namespace tidepool
