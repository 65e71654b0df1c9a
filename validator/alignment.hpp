// Alignment of addresses: that of the device, and that of a pool.
#pragma once

#include "simulator/plan_file.hpp"
#include "simulator/run_spec.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Operands of kernels begin at multiples of it (CUDA C++ Programming Guide, "Device Memory Accesses": memory from the
/// runtime is aligned to at least 256 bytes).
inline constexpr Bytes kDeviceAlignment{256};

/// The offsets of the pool that a plan was made with are multiples of it: its option "alignment" if it has one,
/// PoolInfo::granule if not. Never more than kDeviceAlignment.
Bytes granule_of(const RunSpec& spec);

/// Every place of the plan begins at a multiple of `granule`.
/// @throws PlanError  "alloc 7 before op 12: it begins at 513 B; expected a multiple of 256 B"
void check_alignment(const PlanFile& file, Bytes granule);

}  // namespace tidepool
