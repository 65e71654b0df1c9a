// The part of a machine that each rank of a job has.
#pragma once

#include <cstddef>

#include "simulator/machine/machine.hpp"

namespace tidepool {

/// The machine of one rank of a job, if all devices use what they share at the same time: ranks 0 to n - 1 are on the
/// first link (or host) of n devices, the next n on the second, and so on. Each has an equal part of the rate of its
/// link, and of the memory of its host and the rate and the capacity of the host's storage. Devices without a rank take
/// nothing. Latencies do not change.
/// @param ranks  of the job; more than `rank`
Machine share_of(Machine machine, std::size_t rank, std::size_t ranks);

}  // namespace tidepool
