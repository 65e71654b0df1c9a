// Decisions as text for people and as JSON for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/run.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Names of all policies in the chain of `spec`, except `none`. Decision::policy is an index into them.
/// @throws InputError  as names_of()
std::vector<std::string> deciding_policies(const RunSpec& spec);

/// One line, without a line end, for example
///   "iteration 0, op 12 (mm) at 3.2 ms: 12 MiB for buffer 17: lru drops version 31 of buffer 9; frees 8 MiB; first of
///   41 by last use, ns: 31 at 120, 17 at 3400"
/// @param policies  of deciding_policies()
std::string to_text(const Decision& decision, const Trace& trace, const std::vector<std::string>& policies);

/// {"iteration", "op", "time_ns", "occasion", "policy", "request": {"bytes", "buffer", "version"}, "chosen":
/// [{"action", "version" or "op", "buffer", "bytes"}], "in_vain", "freed_bytes", "leaving_bytes", "candidates",
/// "score", "first": [{"versions", "score", "at_least"}]}. Keys without a value are absent.
nlohmann::ordered_json to_json(const Decision& decision, const Trace& trace, const std::vector<std::string>& policies);

}  // namespace tidepool
