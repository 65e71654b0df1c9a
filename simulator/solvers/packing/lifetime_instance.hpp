// Tables of lifetimes as packing problems.
#pragma once

#include "simulator/instance.hpp"
#include "traces/import/lifetimes.hpp"

namespace tidepool {

/// The rows as items. An item's id is the index of its row, counted from 0.
/// @param alignment  sizes and offsets are multiples of it too, and no size is 0; 1 B: as the table says
/// @throws InputError  "buffer 3: alignments of 48 B and 512 B have no common multiple below 2^61 B"
Instance instance_of(const LifetimeTable& table, Bytes alignment);

}  // namespace tidepool
