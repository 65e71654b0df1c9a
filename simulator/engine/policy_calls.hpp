// Calls of a run to its policies: questions in the order of the chain, and events.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Keeps, for every policy, the list of versions that have changed since the policy last read it, and measures the wall
/// time of calls if the run asks for that. It decides nothing.
class PolicyCalls {
 public:
  using Policies = std::vector<std::unique_ptr<Policy>>;
  static constexpr std::size_t kMost = 8;

  /// @param policies  at most kMost; may be empty
  /// @param clock     the time that policies see
  /// @param op        the op that policies see as prepared or run
  PolicyCalls(Policies& policies, const Trace& trace, const RunSpec& spec, std::vector<VersionState>& states,
              const Nanos& clock, const std::uint32_t& op)
      : policies_{policies}, trace_{trace}, spec_{spec}, states_{states}, clock_{clock}, op_{op} {
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      changes_[i].bit = static_cast<std::uint8_t>(1u << i);
      all_ |= changes_[i].bit;
      if (policies_[i]->watches()) watching_ |= changes_[i].bit;
    }
  }

  bool empty() const { return policies_.empty(); }
  std::size_t size() const { return policies_.size(); }

  /// Starts a run. The drafts have been made. The time of these calls is not measured.
  void start_run() {
    for (std::size_t i = 0; i < size(); ++i) {
      if (policies_[i]->anticipates()) anticipating_ |= changes_[i].bit;
      policies_[i]->start(view(i));
    }
  }
  /// Starts a further iteration.
  void start_iteration() {
    for (std::size_t i = 0; i < size(); ++i) ask(i, [](Policy& policy, const View& view) { policy.start(view); });
  }

  /// The run as policy `i` sees it.
  View view(std::size_t i) { return {trace_, spec_, states_, clock_, op_, changes_[i]}; }

  /// Calls question(Policy&, View) for policy `i`.
  template <class Question>
  void ask(std::size_t i, Question question) {
    if (!spec_.count_search) return question(*policies_[i], view(i));
    const auto begin = std::chrono::steady_clock::now();
    question(*policies_[i], view(i));
    time_ += Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  }
  bool any_anticipates() const { return anticipating_ != 0; }
  bool anticipates(std::size_t i) const { return (anticipating_ & changes_[i].bit) != 0; }

  /// Records for every policy that the state of `v` has changed.
  void changed(VersionId v) {
    if (states_[v.index()].journaled != all_) note_change(v);
  }
  void forget_changes() {
    for (Changes& changes : changes_) changes.ids.clear();
  }
  void dropped(VersionId v) {
    tell([&](Policy& policy, const View& view) { policy.dropped(view, v); });
  }
  void computed(std::span<const VersionId> versions) {
    tell([&](Policy& policy, const View& view) { policy.computed(view, versions); });
  }

  /// Wall time of the calls since the last take_time(); 0 unless the run asks for it.
  Nanos take_time() { return std::exchange(time_, {}); }

 private:
  template <class News>
  void tell(News news) {
    if (watching_ == 0) return;
    for (std::size_t i = 0; i < size(); ++i)
      if ((watching_ & changes_[i].bit) != 0) ask(i, news);
  }

  void note_change(VersionId v) {
    VersionState& state = states_[v.index()];
    for (std::size_t i = 0; i < size(); ++i)
      if ((state.journaled & changes_[i].bit) == 0) {
        state.journaled |= changes_[i].bit;
        changes_[i].ids.push_back(v);
      }
  }

  Policies& policies_;
  const Trace& trace_;
  const RunSpec& spec_;
  std::vector<VersionState>& states_;
  const Nanos& clock_;
  const std::uint32_t& op_;
  std::array<Changes, kMost> changes_;
  std::uint8_t all_ = 0;           // the bits of all policies
  std::uint8_t anticipating_ = 0;  // bit i: policy i wants before_place()
  std::uint8_t watching_ = 0;      // bit i: policy i wants dropped() and computed()
  Nanos time_;
};

}  // namespace tidepool
