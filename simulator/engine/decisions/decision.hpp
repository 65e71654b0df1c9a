// What a run tells of itself. Its decisions, each with the request, the policy that answered, the candidates, the
// choice and its effect, also as text and JSON; and the request that it could not place.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/plan.hpp"
#include "simulator/pool.hpp"
#include "simulator/run.hpp"
#include "traces/trace.hpp"

namespace tidepool {

enum class Occasion : std::uint8_t {
  kRequest,    ///< a request did not fit
  kExpected,   ///< a request was about to be made
  kBeforeRun,  ///< an op was about to run
  kPlan,       ///< the action is in a plan that was made before the run
  kRules,      ///< the engine itself drops a version; it is recomputed or swapped in again before its next use
};

/// One answer of a policy and its effect on the run, or an eviction by the engine's own rules.
struct Decision {
  int iteration = 0;
  OpId before;  ///< the op that the program runs next; none: the last op has run
  Nanos time;   ///< on the run's clock
  Occasion occasion = Occasion::kPlan;
  std::size_t policy = 0;          ///< index into deciding_policies(); 0 if kRules
  std::optional<Request> request;  ///< for kRequest and kExpected; for kPlan if the plan acts before a request
  Ranking ranking;                 ///< for kRequest
  std::vector<Action> chosen;      ///< actions that were carried out, in this order
  std::vector<Action> in_vain;     ///< actions without effect: already done or under way, or no memory for them
  Bytes freed;                     ///< bytes of places that became free at once
  Bytes leaving;                   ///< bytes of places that become free when their swap-outs end
};

/// A function that is called for every decision of a run, in order, after it has been carried out.
using OnDecision = std::function<void(const Decision&)>;

/// The request that a run could not place when it was out of memory.
struct Shortage {
  OpId before;        ///< the next op of the program; none: the end of the step
  VersionId version;  ///< the version without a place
  Bytes size;
  Bytes held;          ///< sum of the sizes of all versions that have a place
  Bytes largest_hole;  ///< as the pool reports it; may be larger than the real one by the pool's rounding
  bool operator==(const Shortage&) const = default;
};

/// Runs like simulate(), but always in the order of `trace`.
/// @return  the failed request; none if the run ended neither out of memory nor as infeasible
std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec);

/// The same result as simulate(), which describes `keep_plan`.
/// @param tell  called for every decision; may be empty
/// @throws InputError  if `tell` is not empty and a policy changes the order of the ops
Result simulate_explained(const Trace& trace, const RunSpec& spec, bool keep_plan, const OnDecision& tell);

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
