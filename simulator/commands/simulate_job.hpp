// tidepool simulate of a job file: its options, and the run.
#pragma once

#include <optional>
#include <string>

#include "simulator/ranks/job_run.hpp"
#include "simulator/sweep/grid.hpp"
#include "traces/command_line.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// The options of simulate that only jobs have.
struct JobText {
  std::optional<std::string> ranks, scale, of, collectives, threads;
};

/// Sets every text to one that no command line can give. Afterwards, the options that the user gives can be told from
/// those left out, even if they have their defaults: with one of them, the ranks of a job run policies.
void forget_defaults(GridText& grid);
GridText with_defaults(GridText grid);

void declare_job_options(const CommandLine& app, JobText& text);

/// @throws InputError  "--of: 'gpu'; expected all, ops or host"
JobChange change_of(const JobText& text);

/// @throws InputError  "--scale: vgg.tide is no job file; expected this option with a job file"
void refuse_job_options(const JobText& text, const std::string& trace);

/// @return  the exit code
/// Without an option of a run, the job runs as recorded; with one, its ranks run policies.
/// @throws InputError  "--iterations: the ranks of a job run one step alone; expected the trace of one rank"
int simulate_job_file(const std::string& path, const GridText& grid, const JobText& text, bool json);

}  // namespace tidepool
