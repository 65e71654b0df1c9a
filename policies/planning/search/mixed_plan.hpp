// Plans that keep, copy and recompute: what a selection of gaps comes to.
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

/// What a planner plans about. All of it outlives the planning.
struct Planning {
  const Trace& trace;
  const StepCircle& circle;
  const std::vector<Gap>& gaps;
  const Reruns& reruns;
  const Machine& machine;
  Bytes capacity;
  /// Whether what is leaving is in the way of copies back, and what could not leave in time is kept; if not, copies out
  /// are taken to be done at once, as schedule_late() takes them.
  bool leaving_takes_room = true;
};

/// Which gaps are used, and how. What is in neither is kept.
struct MixedSelection {
  std::vector<std::uint32_t> copied, dropped;
};
using SelectMixed = std::function<MixedSelection(const SlotLimits&)>;

struct MixedPlan {
  GapPlan plan;
  std::vector<Bytes> load;    ///< by slot: what is left if copies take no time and nothing is there before it is due
  std::vector<Bytes> beyond;  ///< by slot: what is there besides: copies under way, what was made again early because
                              ///< something else is made from it, and what was made again only for that
  Nanos recomputed, late;     ///< what is run again; what ops wait for copies back if all else goes as planned
};

/// Schedules a selection: drops when content is released; copies back as late as possible (schedule_late), for what is
/// due or what is made again from it, where there is room besides what is leaving; ops start later by what is run again
/// in front of them. Nothing: something needed could no longer be made.
std::optional<MixedPlan> schedule_mixed(const Planning& planning, const MixedSelection& selection, CopyOut copies);

/// Ours: picks gaps by descending worth until the load is nowhere above `limits`, skipping those during which it is
/// not. Worth: integral over the gap of what earlier picks have left above the limits, divided by what the gap costs:
/// what must be run again, or `price` ns for every byte that is copied and the time that copies take beyond the gap,
/// whichever is less, which is also what is done. Worth is found anew when a sixteenth of the picks were made since.
/// The price of the links is what a dual of the fluid program (fluid_bound) would say: 0: copy everything; infinite:
/// copy only what cannot be made again. By lazy evaluation: worth never rises.
/// @param costs  by gap, of Reruns::costs()
/// @param start  what is picked in any case; what it lacks is picked like this
MixedSelection select_by_price(const Planning& planning, const std::vector<Nanos>& costs, double price,
                               const SlotLimits& limits, MixedSelection start = {});

/// Selects and schedules in turns, as try_rounds() does for copies alone: what one plan holds beyond its selection is
/// taken off the limits that the next one is made for.
void try_mixed_rounds(Trials& trials, const Planning& planning, Bytes slack, int rounds, CopyOut copies,
                      const SelectMixed& select, bool drops_on_demand = false);

/// Prices at which select_by_price() may pick otherwise: 0, and what dropping costs in ns per byte; at most `most` and
/// one, ascending.
std::vector<double> possible_prices(const Planning& planning, const std::vector<Nanos>& costs, std::size_t most);

/// Adds to what a plan has selected for more memory what it lacks for the capacity, by a few prices; whether it is
/// drops alone that make room on demand, and the other way round.
void try_with_less(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, GapPlan plan);

/// What a plan has selected, and when its copies to the host are issued.
MixedSelection selection_of(const GapPlan& plan);
CopyOut copies_of(const GapPlan& plan);

}  // namespace tidepool
