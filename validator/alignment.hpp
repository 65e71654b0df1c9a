// Alignment of addresses: that of the device, and that of a pool.
#pragma once

#include "simulator/plan_file.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Alignment of the operands of kernels (CUDA C++ Programming Guide, "Device Memory Accesses": memory from the runtime
/// is aligned to at least 256 bytes).
inline constexpr Bytes kDeviceAlignment{256};

/// The granule of the plan's pool: every offset of the pool is a multiple of it. It is the pool's option "alignment" if
/// the pool has one, else PoolInfo::granule; kDeviceAlignment if that is 0 or more than kDeviceAlignment.
Bytes granule_of(const RunSpec& spec);

/// Checks that every place of the plan that has an address begins at a multiple of `granule`.
/// @throws PlanError  "alloc 7 before op 12: it begins at 513 B; expected a multiple of 256 B"
void check_alignment(const PlanFile& file, Bytes granule);

}  // namespace tidepool
