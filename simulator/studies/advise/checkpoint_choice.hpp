// Choice of modules to checkpoint, so that a step fits a capacity at little cost.
#pragma once

#include <string>
#include <vector>

#include "simulator/studies/advise/checkpointed_program.hpp"

namespace tidepool {

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
