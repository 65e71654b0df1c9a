// Choice of modules to checkpoint, so that a step fits a capacity at little cost, and the program with these
// checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/studies/advise/checkpoint.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A step of a changed program.
struct ChangedStep {
  EventKind kind = EventKind::kRun;
  std::uint32_t id = 0;  ///< of the op (kRun) or of the buffer
  bool again = false;    ///< the op runs for the second time, or the buffer is the second run's
};

/// The changed program. No module of `calls` may lie in another one. About O(steps).
std::vector<ChangedStep> checkpointed_steps(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

struct ChangedPeak {
  Bytes bytes;
  std::size_t position = 0;  ///< the peak is between the op before this position of the unchanged program and the
                             ///< next op
};
ChangedPeak peak_of(const Trace& trace, const std::vector<ChangedStep>& steps);

/// The changed program as a trace.
Trace checkpointed_trace(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

/// Modules to checkpoint, none within another.
struct CheckpointChoice {
  std::vector<std::string> modules;  ///< in the order in which forward calls them
  std::vector<const CheckpointedCall*> calls;
  Bytes peak;
  Nanos duration;  ///< of the ops that run again
};

/// The modules of a step that can be checkpointed, and the search among them.
class CheckpointSearch {
 public:
  /// @param kept  operators whose outputs checkpointed modules keep
  explicit CheckpointSearch(const Trace& trace, const KeptOperators& kept = {});
  CheckpointSearch(const CheckpointSearch&) = delete;  // choices point into it
  CheckpointSearch& operator=(const CheckpointSearch&) = delete;

  bool has_modules() const { return !modules_.empty(); }

  /// Choices that fit the capacity; those with the least time to run again come first. A greedy search runs twice: from
  /// no module, and from the best family (module_families()). It adds, one by one, the module that lowers the peak at
  /// the least cost, and then removes needless modules. Each family of two or more modules gives two choices: its
  /// fewest first modules that fit, and every second module. If no choice fits: the choice with the least peak; empty
  /// if none lowers the peak. To add a module, the search computes at most eight peaks, each in about O(steps).
  std::vector<CheckpointChoice> choices(Bytes capacity) const;

 private:
  struct Module {
    std::string path;
    std::vector<CheckpointedCall> calls;  ///< one for each forward pass
    Nanos duration;
  };
  using Set = std::vector<std::size_t>;  ///< indices into modules_, increasing

  CheckpointChoice evaluate(const Set& set) const;
  Set with(const Set& set, std::size_t module) const;
  Bytes relief(const Set& set, std::size_t module, std::size_t position) const;
  Set grow(Set set, Bytes capacity) const;
  Set prune(Set set, Bytes capacity) const;
  Set first_of(const Set& family, Bytes capacity) const;

  const Trace& trace_;
  std::vector<Module> modules_;  ///< in the order in which forward calls them, outer ones first
};

}  // namespace tidepool
