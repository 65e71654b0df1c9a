// Bounds: times that no plan can beat. This header defines what a bound answers, the registry of all bounds, and a
// cache of those of runs.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/resource.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The plans for which a bound must hold: those that replay() accepts for this trace at this capacity, that run the ops
/// for the first time in the order of the trace (unless `order`), and whose other actions are those allowed here.
struct BoundQuery {
  const Trace& trace;
  const Machine& machine;
  Bytes capacity = kNoLimit;
  bool swap = false;   ///< plans may copy versions to the host and back
  bool remat = false;  ///< plans may recompute: run ops again
  Assumptions assume = {};
  int iterations = 1;   ///< number of iterations; the bound is on the time of the last one
  bool steady = false;  ///< the step is repeated without end; the bound is on the mean time of its iterations
  /// Plans may also put the ops into another order that OrderedStep accepts, with ops on lists divided or whole.
  bool order = false;
  std::optional<Nanos> time_limit = {};  ///< wall time of each bound that is a search; none: see BoundInfo::most_ops
};

/// A certified answer: no plan that the query admits ends earlier than `makespan`, or no plan exists at all.
struct Bound {
  std::string name = {};  ///< name of the bound that gave the answer
  std::string with = {};  ///< actions of the plans for which it holds, as with_text() writes them
  bool feasible = true;   ///< false: there is no plan; `makespan` then means nothing
  Nanos makespan = {};
  std::string proof = {};  ///< one line for the reader: why it holds
  /// The resource behind most of the time by which `makespan` exceeds the time of the step without any limit.
  Resource limited_by = Resource::kCompute;  ///< kMemory: no plan exists
  bool operator==(const Bound&) const = default;
};

/// One kind of bound, in one .cpp of this folder. The comment of that file says what it assumes and why it holds.
struct BoundInfo {
  std::string name;
  std::string summary;
  bool swap = true;   ///< it holds for plans that swap; false: it is not asked if plans may swap
  bool remat = true;  ///< the same for plans that recompute
  /// It takes milliseconds for a trace of 10^4 ops, and is computed for every run. False: it is computed only with
  /// BoundEffort::kAll.
  bool quick = true;
  bool steady = false;  ///< it can answer steady queries; false: it is not asked
  bool order = false;   ///< it holds for every order of the ops; false: it is not asked if plans may change the order
  std::optional<std::size_t> most_ops = {};  ///< for longer traces, it is not asked without a time limit
  /// Returns none if the bound has no answer. An answer whose `with` is empty holds for all plans that `swap` and
  /// `remat` of this BoundInfo allow.
  std::function<std::optional<Bound>(const BoundQuery&)> compute;
};

/// A namespace-scope object of this type registers a bound.
struct RegisterBound {
  explicit RegisterBound(BoundInfo info);
};

/// Sorted by name.
std::vector<const BoundInfo*> all_bounds();

/// Which bounds are computed: those with BoundInfo::quick, or all.
enum class BoundEffort : std::uint8_t { kQuick, kAll };

/// The bounds of this effort that hold for the query's plans, the best one last. Infeasibility is better than any time,
/// and a later time is better than an earlier one. Of equal times, the bound with the alphabetically first name is
/// last; of several proofs of infeasibility, the one with the alphabetically last name. `name` and `with` are set in
/// each.
/// @param found  called with each as soon as it is known, quick ones first
std::vector<Bound> compute_bounds(const BoundQuery& query, BoundEffort effort,
                                  const std::function<void(const Bound&)>& found = {});

/// The names of bounds that hold for the query's plans and are left out because of BoundInfo::most_ops.
std::vector<std::string> bounds_without_limit(const BoundQuery& query);

/// These bounds in the order of compute_bounds().
std::vector<Bound> best_last(std::vector<Bound> bounds);

/// The best one of compute_bounds(); none if no bound has an answer.
std::optional<Bound> best_bound(const BoundQuery& query, BoundEffort effort = BoundEffort::kQuick);

/// The allowed actions as text, such as "swap,remat", with "order" in front if plans may change the order.
std::string with_text(bool swap, bool remat, bool order = false);

/// The actions of a chain of policies, as with_text() writes them. If a policy has the option "with", this option names
/// its actions; otherwise they are all actions of its kind.
/// @throws InputError  for an unknown policy, or an unknown option of a policy that has the option "with"
std::string allowed_by(const PolicyChain& policy);

/// The query for the bound of a run: it allows the actions of the run's policies, as given by allowed_by().
/// @return  refers to `trace` and to the machine in `spec`
/// @throws InputError  as allowed_by()
BoundQuery query_of(const Trace& trace, const RunSpec& spec);

/// A cache of quick bounds. Several threads may ask; one of them computes, the others wait for it.
class BoundCache {
 public:
  /// The best quick bound for a run; none if there is none.
  std::optional<Bound> find(const Trace& trace, const RunSpec& spec);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<std::optional<Bound>>> known_;
};

/// A capacity below which the quick bounds prove that no plan of the query runs without overhead. The query's own
/// capacity does not matter. Found by bisection, to a millionth of the peak. A plan for less memory also runs in more,
/// so one bound just below the answer proves it for all smaller capacities.
Bytes least_free_capacity(BoundQuery query);

}  // namespace tidepool
