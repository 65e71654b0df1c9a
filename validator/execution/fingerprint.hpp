// Expected content of every buffer: one number for each version, from which all its words follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/ordered_step.hpp"
#include "traces/trace.hpp"
#include "validator/execution/mix.hpp"

namespace tidepool {

/// The content from which the contents of an op's outputs follow.
/// @param seed    op_seed() of the launch
/// @param inputs  contents as read, one for each use that reads a version and is no view, in use order
std::uint64_t op_content(std::uint64_t seed, std::span<const std::uint64_t> inputs);

/// Inputs of ops that do not come from memory (random numbers, batches of data), for first runs and reruns.
class Launches {
 public:
  explicit Launches(const Trace& trace) : trace_{trace}, saved_draw_(trace.ops().size()), runs_(trace.ops().size()) {}

  /// The op_seed() of this launch: a random op draws at its first run, and uses the saved draw in a rerun; a source
  /// brings new content every time.
  /// @param redraw  for tests: a rerun of a random op draws again, which is wrong
  std::uint64_t seed(OpId op, bool redraw = false);
  void next_iteration() { std::fill(saved_draw_.begin(), saved_draw_.end(), 0); }

 private:
  const Trace& trace_;
  std::vector<std::uint64_t> saved_draw_;  ///< by op; 0: has not run in this iteration
  std::vector<std::uint64_t> runs_;        ///< by op; only for sources
  std::uint64_t drawn_ = 0;
};

/// Contents of all root versions in one iteration, as the program without any policy makes them.
struct Expected {
  std::vector<std::uint64_t> content;  ///< by version; meaningless for views
  std::uint64_t draws = 0;             ///< number of draws from the generator until the end of the iteration
  std::uint64_t iteration = 0;

  /// The first iteration. O(uses).
  static Expected first(const Trace& trace);
  /// The next iteration. Buffers from before the trace keep their content if the trace does not free them; those that
  /// it frees get new content.
  Expected next(const Trace& trace) const;

 private:
  void run_program(const Trace& trace);
};

/// The program whose bytes a plan must compute: the recorded program, even if the plan has another order. Ops and
/// versions of the plan's step have the content of the corresponding ones of the recorded step.
class Reference {
 public:
  explicit Reference(const PlannedStep& step)
      : executed_{step.trace()},
        ordered_{step.ordered()},
        recorded_{ordered_ != nullptr ? ordered_->recorded() : executed_} {}

  const Trace& recorded() const { return recorded_; }
  OpId op(OpId op) const { return ordered_ != nullptr ? ordered_->recorded_op(op) : op; }
  /// The recorded version of a version of the plan's step; none for a version that no op uses.
  VersionId version(VersionId v) const { return ordered_ != nullptr ? ordered_->recorded_version(v) : v; }
  /// Expected contents by version of the plan's step.
  Expected first() const;
  Expected next(const Expected& before) const;

 private:
  Expected executed(const Expected& recorded) const;

  const Trace& executed_;
  const OrderedStep* ordered_;
  const Trace& recorded_;
};

/// The version that each buffer holds when the step ends, by buffer.
std::vector<VersionId> last_versions(const Trace& trace);

}  // namespace tidepool
