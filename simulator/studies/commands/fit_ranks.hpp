// Verdicts on the ranks of a job: whether each rank fits a device, and which rank runs out of memory first.
#pragma once

#include <string>

#include "simulator/studies/fit/device_budget.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// Prints a verdict, and a row for each rank.
/// @param pool  the setting of the allocator: pytorch, pytorch-expandable, or "" for that of each recorded rank
/// @return      the exit code: 1 if all ranks fit but some recording ends before a training step, else 0
/// @param path  of the job
/// @throws InputError  as predict_fit(), "job.json: rank 3: ..."
int judge_ranks(const LoadedJob& job, const std::string& path, const DeviceBudget& device, const std::string& pool,
                bool json);

}  // namespace tidepool
