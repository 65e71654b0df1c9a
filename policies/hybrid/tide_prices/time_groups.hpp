// The slots of a step in groups of about equal time, the instants of a linear program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// Consecutive slots that take together at most the period divided by the number of groups, or a single slot. Position
/// p of groups names group p modulo size(), like positions of slots. Times are those of a clock: at first that of the
/// step without limit.
class TimeGroups {
 public:
  TimeGroups(const StepCircle& circle, std::size_t most) : clock_{circle.start}, group_(circle.size()) {
    const Nanos longest = most >= circle.size() ? Nanos{} : circle.period() / static_cast<std::int64_t>(most);
    for (std::size_t k = 0; k < circle.size(); ++k) {
      if (first_.empty() || most >= circle.size() || circle.start[k + 1] - circle.start[first_.back()] > longest) {
        first_.push_back(k);
        load_.emplace_back();
        work_.emplace_back();
      }
      group_[k] = first_.size() - 1;
      load_.back() = std::max(load_.back(), circle.load[k]);
      work_.back() += circle.start[k + 1] - circle.start[k];
    }
  }

  std::size_t size() const { return first_.size(); }
  std::size_t group(std::size_t slot) const { return group_[slot]; }
  Bytes load(std::size_t group) const { return load_[group]; }  ///< most of its slots
  Nanos work(std::size_t group) const { return work_[group]; }  ///< time of its ops

  /// The position of the group of a position of slots.
  std::int64_t position(std::size_t slot) const {
    return static_cast<std::int64_t>(slot / group_.size() * size() + group_[slot % group_.size()]);
  }
  /// The first position of groups that begins at or after this position of slots.
  std::int64_t first_from(std::size_t slot) const {
    const std::size_t k = slot % group_.size();
    return position(slot) + (first_[group_[k]] == k ? 0 : 1);
  }

  void set_clock(std::vector<Nanos> start) { clock_ = std::move(start); }
  Nanos period() const { return clock_.back(); }
  Nanos at_slot(std::size_t slot) const {
    return clock_[slot % group_.size()] + period() * static_cast<std::int64_t>(slot / group_.size());
  }
  /// The start of the group at a position.
  Nanos at(std::int64_t position) const {
    const auto groups = static_cast<std::int64_t>(size());
    return clock_[first_[static_cast<std::size_t>(position % groups)]] + period() * (position / groups);
  }

 private:
  std::vector<Nanos> clock_;        // by slot; the last entry is the period
  std::vector<std::size_t> group_;  // by slot
  std::vector<std::size_t> first_;  // by group: slot
  std::vector<Bytes> load_;
  std::vector<Nanos> work_;
};

}  // namespace tidepool
