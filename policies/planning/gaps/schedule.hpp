// Scheduling: the time at which each copy of a selection is issued.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/plan.hpp"

namespace tidepool {

/// A gap that a plan uses. Its swap-in is issued before the op at position `issue`, release < issue <= due. If `copy`
/// is 0, its swap-out is issued at the release. Otherwise, a copy to the host is issued before op `copy`, and the
/// version leaves the device at the release. Up to the release, Gap::out is copied; after it, Gap::renewed, for the
/// next iteration.
struct PlannedGap {
  std::uint32_t gap = 0;
  std::uint32_t issue = 0;
  std::uint32_t copy = 0;
  bool operator==(const PlannedGap&) const = default;
};

/// Tidepool's own schedule: swap-ins as late as possible, in the periodic steady state. Each swap-in ends when it is
/// due or when the next one on the lane must begin. If it does not fit into the memory in between, it begins later, and
/// ends too late. Swap-outs are assumed to take no time. If swap-ins due early in the step begin at the end of the step
/// before, the schedule is made a second time around the circle. A slot whose load after the selection exceeds `limit`
/// counts as full. The plan is in the order of due ops, last first. O(slots + gaps log gaps + gaps log slots).
std::vector<PlannedGap> schedule_late(const StepCircle& circle, const std::vector<Gap>& gaps,
                                      const std::vector<std::uint32_t>& selected, const Machine& machine, Bytes limit);

/// By slot: the live bytes without the content in the selected gaps, if copies take no time. peak_without() is the
/// largest of these numbers.
std::vector<Bytes> load_without(const StepCircle& circle, const std::vector<Gap>& gaps,
                                const std::vector<std::uint32_t>& selected);
Bytes peak_without(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& selected);

/// By slot: bytes that are on the device only because they are being copied. Swap-outs are issued at the release.
/// Swap-ins are as late as the lane allows, in the periodic steady state, without a limit of memory. A selection costs
/// no time if its load and these bytes fit together. A copy counts in whole slots. Content that the host has already is
/// not copied again.
std::vector<Bytes> bytes_under_way(const StepCircle& circle, const std::vector<Gap>& gaps,
                                   const std::vector<std::uint32_t>& selected, const Machine& machine);

/// AutoSwap's schedule as published ("stick to the limit"; arXiv 1903.06631, section 4.3, and its code): swap-outs
/// follow each other from their releases on. Swap-ins end when they are due or when the next one begins; they are
/// placed from the last to the first. If this makes the load exceed `limit` in a slot, the copy begins after that slot.
std::vector<PlannedGap> schedule_stick_to_limit(const StepCircle& circle, const std::vector<Gap>& gaps,
                                                const std::vector<std::uint32_t>& selected, const Machine& machine,
                                                Bytes limit);

/// The actions of a plan, sorted, with swap-outs before swap-ins at the same op; but a swap-in that keeps a version on
/// the device during its early swap-out directly follows this swap-out. Content that one op needs comes back in the
/// opposite order of its gaps, and content that one op releases leaves in their order, so that lives nest: where places
/// matter, nested lives need less memory. If a gap crosses the boundary and its swap-in is issued after the boundary,
/// its content is on the host when the step begins.
std::vector<Action> draft_of(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& planned, std::size_t ops);

}  // namespace tidepool
