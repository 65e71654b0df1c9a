// Plans that keep, copy and recompute: the consequences of a selection of gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/reruns.hpp"

namespace tidepool {

/// The inputs of a planner. All of them outlive the planning.
struct Planning {
  const Trace& trace;
  const StepCircle& circle;
  const std::vector<Gap>& gaps;
  const Reruns& reruns;
  const Machine& machine;
  Bytes capacity;
  /// Whether swap-outs take time: their bytes delay swap-ins, and versions that could not leave in time are kept. If
  /// not, swap-outs are assumed to take no time, as in schedule_late().
  bool leaving_takes_room = true;
};

/// The used gaps: those that are copied and those that are dropped. All others are kept.
struct MixedSelection {
  std::vector<std::uint32_t> copied, dropped;
};
using SelectMixed = std::function<MixedSelection(const SlotLimits&)>;

struct MixedPlan {
  GapPlan plan;
  std::vector<Bytes> load;    ///< by slot: the load if copies take no time and all content comes back at its due op
  std::vector<Bytes> beyond;  ///< by slot: further bytes: copies under way, versions that were recomputed early as
                              ///< inputs of others, and versions recomputed only as such inputs
};

/// Schedules a selection. Drops are at the release. Swap-ins are as late as possible (schedule_late), before the due op
/// or before a rerun that reads the content, if memory allows beside content that is leaving. Reruns delay the ops
/// after them. None if a needed version can no longer be recomputed.
std::optional<MixedPlan> schedule_mixed(const Planning& planning, const MixedSelection& selection, CopyOut copies);

/// Picks gaps by descending worth until the load is within all `limits`; skips gaps without a slot above its limit.
/// Worth is the integral over the gap of the load above the limits after earlier picks, divided by the gap's cost. The
/// cost is the smaller of two: the rerun time; or `price` ns for every copied byte plus the time by which the copies
/// exceed the gap. The cheaper treatment is chosen. Worth never rises, so it is evaluated lazily: again after a
/// sixteenth more picks. The price of the links stands for a dual of the fluid program (fluid_bound). At 0, every
/// picked gap that is long enough for both copies is copied; at infinity, only versions that cannot be recomputed are.
/// @param costs  by gap, from Reruns::costs()
/// @param start  gaps that are picked in any case; the rules above add others
MixedSelection select_by_price(const Planning& planning, const std::vector<Nanos>& costs, double price,
                               const SlotLimits& limits, MixedSelection start = {});

/// Selects and schedules in turns, like try_rounds() for copies alone: the further bytes of one plan are subtracted
/// from the limits of the next one.
void try_mixed_rounds(Trials& trials, const Planning& planning, Bytes slack, int rounds, CopyOut copies,
                      const SelectMixed& select, bool drops_on_demand = false);

/// Prices at which the picks of select_by_price() may change: 0, and the costs of drops in ns per byte. At most
/// `most` + 1 prices, ascending.
std::vector<double> possible_prices(const Planning& planning, const std::vector<Nanos>& costs, std::size_t most);

/// Extends the selection of a plan for more memory to fit the capacity, at a few prices. Tries both answers to
/// shortages: drops only, and the other one.
void try_with_less(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, GapPlan plan);

/// The selection of a plan, and the times at which its swap-outs are issued.
MixedSelection selection_of(const GapPlan& plan);
CopyOut copies_of(const GapPlan& plan);

/// The machine for which copies are planned: its links have the rate that they have while data moves both ways, and
/// their latencies include the host's time to submit a copy.
Machine with_busy_links(Machine machine);

}  // namespace tidepool
