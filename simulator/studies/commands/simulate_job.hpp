// Options of runs and of jobs that simulate, sweep and report share, and the run of a job file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/ranks/job_run.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "traces/base/command_line.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// Declares --pool, --policy, --capacity, --machine, --seed, --assume, --overhead-limit, --iterations, --first and
/// --count-search. `text` must live until the command line is parsed.
void declare_grid_options(const CommandLine& app, GridText& text);

/// Those of these options and of declare_job_options() that only --help-all lists, and `more`.
std::vector<std::string> seldom_grid_options(std::vector<std::string> more = {});

/// The options of simulate that only jobs have.
struct JobText {
  std::optional<std::string> ranks, scale, of, collectives, threads;
};

/// Sets every text to a value that no command line can give. An option that the user gives then differs from an option
/// left out, even if it has the default value. With any option of a run, the ranks of a job run policies.
void forget_defaults(GridText& grid);
/// The options after forget_defaults(), with the default value for each option that was left out.
GridText with_defaults(GridText grid);

void declare_job_options(const CommandLine& app, JobText& text);

/// @throws InputError  "--of: 'gpu'; expected all, ops or host"
JobChange change_of(const JobText& text);

/// Refuses the options of jobs, if any is given, for a trace that is no job file.
/// @throws InputError  "--scale: vgg.tide is no job file; this option needs one"
void refuse_job_options(const JobText& text, const std::string& trace);

/// Without an option of a run, the job runs as recorded; with one, its ranks run policies.
/// @param plan_out  if not empty: RUN.plan stands for the files RUN.rank0.plan, RUN.rank1.plan, ..., each with the plan
///                  of a rank for its trace
/// @return  the exit code
/// @throws InputError  "--iterations: the ranks of a job run one step alone; expected the trace of one rank"
int simulate_job_file(const std::string& path, const GridText& grid, const JobText& text, const std::string& plan_out,
                      bool json);

}  // namespace tidepool
