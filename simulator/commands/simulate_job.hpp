// tidepool simulate of a job file: its options, and the run.
#pragma once

#include <optional>
#include <string>

#include "simulator/sweep/grid.hpp"
#include "traces/command_line.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// What the command line says of a job.
struct JobText {
  std::optional<std::string> ranks, scale, of, collectives, threads;
};

/// Texts that no command line can give stand for options that are not given: a job refuses those that are, even with
/// their defaults.
void forget_defaults(GridText& grid);
GridText with_defaults(GridText grid);

void declare_job_options(const CommandLine& app, JobText& text);

/// @throws InputError  "--scale: vgg.tide is no job file; expected it with one"
void refuse_job_options(const JobText& text, const std::string& trace);

/// @return  the exit code
/// @throws InputError  "--policy: the ranks of a job keep what they keep in the recording; expected it without a job"
int simulate_job_file(const std::string& path, const GridText& grid, const JobText& text, bool json);

}  // namespace tidepool
