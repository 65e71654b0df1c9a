// What sweep does with databases in the place of traces: it merges several, and goes on with one.
#pragma once

#include <span>
#include <string>

#include "simulator/studies/commands/sweep_run.hpp"

namespace tidepool {

/// Puts the databases of several workers together; two results of one run are an error. @return  the exit code
int merge_databases(std::span<const std::string> sources, const std::string& output, bool any_version);

/// Does the runs that a database lacks, without their command line. @return  the exit code
int resume_sweep(const std::string& path, int threads, const SweepShow& show);

}  // namespace tidepool
