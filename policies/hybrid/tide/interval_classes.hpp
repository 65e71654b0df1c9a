// Idle intervals that a linear program need not tell apart.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "policies/hybrid/tide/step_model.hpp"
#include "policies/hybrid/tide/time_groups.hpp"

namespace tidepool {

/// Idle intervals of different contents between the same groups, with like sizes and costs. All times are in
/// milliseconds, all bytes in MiB.
struct IntervalClass {
  std::vector<std::uint32_t> members;
  double bytes = 0, in = 0, out = 0;            ///< sums over all members
  double recompute = -1;                        ///< sum; negative: cannot be recomputed
  std::int64_t begin = 0, end = 0;              ///< groups in which dropped content is absent
  std::int64_t copy_begin = 0, copy_end = 0;    ///< groups in which copied content is absent; empty: cannot be copied
  std::int64_t release = 0, due = 0, made = 0;  ///< groups of these ops; made: negative if in the iteration before
  bool can_copy() const { return copy_begin < copy_end; }
};

/// The classes of all idle intervals that relieve a group above the capacity.
struct IntervalClasses {
  std::vector<IntervalClass> classes;
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_content;  ///< by version: idle intervals, by release
  std::map<std::uint32_t, std::uint32_t> on_host;  ///< by version that may begin on the host: its idle interval
  std::vector<std::uint32_t> class_of;             ///< by idle interval; kNone: in no class
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
};

/// @param above  by group: whether its load is above the capacity
IntervalClasses find_interval_classes(const StepModel& model, const TimeGroups& groups, const std::vector<bool>& above);

inline double in_ms(Nanos time) { return static_cast<double>(time.count()) * 1e-6; }
inline double in_mib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

}  // namespace tidepool
