// Job whose ranks follow plans. Each rank runs its policy in its own memory; while it waits for other ranks, it may
// copy and recompute.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/studies/ranks/job_run.hpp"
#include "simulator/studies/ranks/rank_trace.hpp"

namespace tidepool {

/// One rank with its plan.
struct RankPlan {
  RunSpec spec;
  Bytes ideal_peak;
  std::size_t like = 0;  ///< the first rank with this work and an equal part of the machine; both follow one plan
  Result result;         ///< of the rank's step, run alone with the waits for which its plan was made
  Nanos waited;          ///< waits in collectives, in the job without limits
  Nanos waits;           ///< waits in collectives, in the job with plans, if all ranks have a plan
  Nanos ends;            ///< end of the rank's last op in the job with plans
  Nanos copies;          ///< sum of the times of the plan's copies, each as if it were alone on its link
  /// The part of `copies` that neither computation nor waits for other ranks hide. It is the time in which only a copy
  /// or memory in use keeps some op of the rank from starting, less the time by which the rank's waits for others
  /// become shorter. Time in which several streams wait counts once.
  Nanos exposed;
};

struct JobPlans {
  std::vector<RankPlan> ranks;
  Nanos baseline;                      ///< makespan of the job without limits
  std::optional<Nanos> makespan = {};  ///< of the job with plans; none if a rank has no plan
  /// No plans with the actions that the ranks' policies may take let the job end earlier. The bound is the largest of
  /// the makespan without limits and the bounds on the step of each rank without waits for others. None: no plan exists
  /// for some rank.
  std::optional<Nanos> bound;
};

/// Gives the options for the run of a rank's step. plan_job() sets the machine's launch time to 0, because the step
/// contains the time of the host.
using SpecOfRank = std::function<RunSpec(const Trace&)>;

/// Simulates the job without limits, makes a plan for each rank, and then runs all plans together. Ranks that do the
/// same work have one plan. A plan may copy and recompute while its rank waits. When the plans run, a rank that is
/// late for a collective makes the other ranks wait. Then the plan of each kind of rank is made once more, for the
/// waits that the plans of the others leave it, and taken if the job ends earlier; so are those of all kinds, until
/// none gains. A collective is run again only if all ranks do the same from the same time on, since then all run it
/// again at once. Each rank has its part of the machine, see share_of(). Only one step is simulated; it begins with
/// all state on the device, unless a policy puts state on the host. Results are the same for any number of threads.
/// @throws InputError  as changed_job() and simulate_job(), and "job.json: rank 2: the trace has no buffers; ..."
JobPlans plan_job(const LoadedJob& job, const std::string& path, const JobChange& change, const SpecOfRank& spec,
                  std::size_t threads);

void print_plans(const LoadedJob& job, const std::string& path, const JobPlans& plans);
std::string plans_json(const std::string& path, const JobPlans& plans);

}  // namespace tidepool
