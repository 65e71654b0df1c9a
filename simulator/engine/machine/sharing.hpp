// The share of a machine that each rank of a job has.
#pragma once

#include <cstddef>

#include "simulator/machine.hpp"

namespace tidepool {

/// The machine that one rank of a job sees while all ranks use their links, hosts and storage at the same time. Ranks 0
/// to n - 1 are on the first link (or host) of n devices, the next n on the second, and so on. Each rank has an equal
/// part of its link's rate, of its host's memory, and of the rate and the capacity of that host's storage. Devices
/// without a rank take nothing. Latencies do not change.
/// @param ranks  number of ranks of the job; more than `rank`
Machine share_of(Machine machine, std::size_t rank, std::size_t ranks);

}  // namespace tidepool
