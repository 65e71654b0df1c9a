// Alignment of addresses: that of the device, and that of a pool.
#pragma once

#include "simulator/plan_file.hpp"
#include "simulator/run_spec.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Kernels' operands begin at multiples of this (CUDA C++ Programming Guide, "Device Memory Accesses": memory from the
/// runtime is aligned to at least 256 bytes).
inline constexpr Bytes kDeviceAlignment{256};

/// The number of bytes of which all offsets of the plan's pool are multiples: the pool's option "alignment" if it has
/// one, else PoolInfo::granule. Never more than kDeviceAlignment.
Bytes granule_of(const RunSpec& spec);

/// Checks that every place of the plan begins at a multiple of `granule`.
/// @throws PlanError  "alloc 7 before op 12: it begins at 513 B; expected a multiple of 256 B"
void check_alignment(const PlanFile& file, Bytes granule);

}  // namespace tidepool
