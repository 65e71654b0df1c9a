// Placement of the buffers of a trace by a pool or planner, without ops and times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/result.hpp"
#include "simulator/solvers/packing/layout_file.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Result of placing the buffers.
struct Packing {
  Outcome outcome = Outcome::kOk;  ///< of a planner also kInfeasible and kTimeLimit: see Layout
  std::string message;             ///< the request that found no place, or how much a planner's layout needs
  bool addresses = true;           ///< false: the pool only counts bytes, and the height is the load
  std::int64_t buffers = 0;
  std::int64_t events = 0;  ///< number of places given and taken back
  Bytes load;               ///< largest sum of live bytes
  Bytes placed;             ///< of a pool: largest sum of places that are taken, as the pool rounds them
  Bytes height;             ///< largest address in use or most reserved at once, until the end or the failure
  Bytes lower_bound;        ///< no placement is lower: the load, or what a planner proved
  std::string proof;        ///< proof of the lower bound: "load", ...
  Nanos wall;               ///< wall time in the pool or planner

  std::vector<std::vector<Count>> counts;  ///< of a pool: Pool::counts() by device, none for one without buffers
  std::vector<LayoutFile> layouts;         ///< of a planner for a trace: one for each device with buffers
  std::vector<Bytes> offsets;              ///< of a planner for an instance, by item

  /// Height over the lower bound, less 1; 0 if both are 0, infinite if only the bound is.
  double gap() const;
  /// The sums of `counts` over the devices.
  std::vector<Count> count_sums() const;
  /// Whether it is proved that no placement of these lifetimes is lower.
  bool optimal() const { return outcome == Outcome::kOk && addresses && height == lower_bound; }
};

/// Gives every buffer of `trace` a place for its lifetime, in program order. Each device has its own pool of the
/// capacity in `limits`, and the sizes are sums over the devices. Every layout of a planner is verified.
/// @param segments  recorded addresses that the device hands out, in this order; empty: modelled ones. A planner asks
///                  for none
/// @throws InputError  if the pool asks for more segments than `segments` has
Packing pack(const Trace& trace, const PoolInfo& pool, const Options& options, const PackingLimits& limits,
             std::span<const Bytes> segments = {});

/// The same for lifetimes that are no trace: with gaps, alignments or fixed offsets. `planner` has PoolInfo::plan.
/// @throws InputError  as check() does
Packing pack(const Instance& instance, const PoolInfo& planner, const Options& options, const PackingLimits& limits);

}  // namespace tidepool
