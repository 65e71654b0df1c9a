// Scheduling: when each copy of a selection is issued. The second of the four decisions.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/plan.hpp"

namespace tidepool {

/// When copies to the host are issued: when the gap is released, or when the lane is free, of what has been made always
/// what is released first.
enum class CopyOut : std::uint8_t { kAtRelease, kWhenFree };

/// A gap that a plan uses: its copy back is issued in front of the op at position `issue`, release < issue <= due, its
/// copy out when it is released, or, where `copy` is not 0, in front of that earlier op: it stays on the device until
/// it is released.
struct PlannedGap {
  std::uint32_t gap = 0;
  std::uint32_t issue = 0;
  std::uint32_t copy = 0;
  bool operator==(const PlannedGap&) const = default;
};

/// Ours: as late as possible, in the periodic steady state: each copy back ends when it is due or when the next one on
/// the lane must begin, and begins earlier only as far as there is no room for it in between. Copies out are taken to
/// be done at once. Goes round twice, so that what is due early in the step finds the lane as the end of the step
/// leaves it. Where the selection alone leaves more than `limit` there is no room. In the order of due ops, last first.
/// O(slots + gaps log gaps + slots that copies last for).
std::vector<PlannedGap> schedule_late(const StepCircle& circle, const std::vector<Gap>& gaps,
                                      const std::vector<std::uint32_t>& selected, const Machine& machine, Bytes limit);

/// By slot: the load while the selected gaps are absent, if copies take no time; and the most of it.
std::vector<Bytes> load_without(const StepCircle& circle, const std::vector<Gap>& gaps,
                                const std::vector<std::uint32_t>& selected);
Bytes peak_without(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& selected);

/// By slot: bytes that have a place on the device only because they are being copied, if the selection's copies go out
/// as early and come back as late as the lanes allow, in the periodic steady state and whatever room there is. A
/// selection that leaves room for these as well costs no time, whole slots being counted. What the host has already is
/// not copied again.
std::vector<Bytes> bytes_under_way(const StepCircle& circle, const std::vector<Gap>& gaps,
                                   const std::vector<std::uint32_t>& selected, const Machine& machine, CopyOut copies);

/// Of these gaps those for which the lane has left in time for a copy back before they are due; the others would only
/// keep it busy.
std::vector<std::uint32_t> worth_copying(const StepCircle& circle, const std::vector<Gap>& gaps,
                                         const std::vector<std::uint32_t>& selected, const Machine& machine,
                                         CopyOut copies);

/// By slot, as of bytes_under_way(): bytes that leave.
std::vector<Bytes> bytes_leaving(const StepCircle& circle, const std::vector<Gap>& gaps,
                                 const std::vector<std::uint32_t>& selected, const Machine& machine, CopyOut copies);

/// Lets copies out begin when the lane is free: CopyOut::kWhenFree.
void copy_when_free(const StepCircle& circle, const std::vector<Gap>& gaps, std::vector<PlannedGap>& planned,
                    const Machine& machine);

/// AutoSwap's, as published ("stick to the limit"; arXiv 1903.06631, section 4.3, and its code): copies out follow each
/// other from their releases on; copies back end when due or when the next begins, counted from the last one back, and
/// where the load that results is above `limit` the copy begins behind that slot.
std::vector<PlannedGap> schedule_stick_to_limit(const StepCircle& circle, const std::vector<Gap>& gaps,
                                                const std::vector<std::uint32_t>& selected, const Machine& machine,
                                                Bytes limit);

/// The draft that carries such a plan out: sorted, copies out before copies back at one op. What a gap that crosses the
/// boundary brings back after it is on the host when the step begins.
std::vector<Action> draft_of(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& planned, std::size_t ops);

}  // namespace tidepool
