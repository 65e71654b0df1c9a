// The slots of a step in groups of about equal time, the instants of a linear program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// Consecutive slots that together take at most the period divided by `most`, with loads that differ little; or
/// single slots. Position p of groups names group p modulo size(), like positions of slots. Times are those of a
/// clock: at first that of the step without limit.
class TimeGroups {
 public:
  /// @param most  about the most groups; at least that many if loads vary much
  TimeGroups(const StepCircle& circle, std::size_t most) : clock_{circle.start}, group_(circle.size()) {
    constexpr std::int64_t kPart = 100;  // groups whose loads differ by less of the peak are not split
    const bool every = most >= circle.size();
    const Nanos longest = circle.period() / static_cast<std::int64_t>(most);
    Bytes widest = *std::max_element(circle.load.begin(), circle.load.end()) / kPart;
    for (split(circle, longest, widest, every); !every && size() > 3 * most; split(circle, longest, widest, every))
      widest = widest * 2 + Bytes{1};
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
  void split(const StepCircle& circle, Nanos longest, Bytes widest, bool every) {
    first_.clear(), load_.clear(), work_.clear();
    Bytes least;
    for (std::size_t k = 0; k < circle.size(); ++k) {
      const Bytes load = circle.load[k];
      const bool fits = !first_.empty() && circle.start[k + 1] - circle.start[first_.back()] <= longest &&
                        std::max(load, load_.back()) - std::min(load, least) <= widest;
      if (every || !fits) {
        first_.push_back(k);
        load_.push_back(least = load);
        work_.emplace_back();
      }
      group_[k] = first_.size() - 1;
      least = std::min(least, load);
      load_.back() = std::max(load_.back(), load);
      work_.back() += circle.start[k + 1] - circle.start[k];
    }
  }

  std::vector<Nanos> clock_;        // by slot; the last entry is the period
  std::vector<std::size_t> group_;  // by slot
  std::vector<std::size_t> first_;  // by group: slot
  std::vector<Bytes> load_;
  std::vector<Nanos> work_;
};

}  // namespace tidepool
