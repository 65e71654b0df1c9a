// Choice of modules whose saved tensors are copied to the host, so that a step fits a capacity with few copies.
#pragma once

#include <string>
#include <vector>

#include "simulator/studies/advise/offload.hpp"

namespace tidepool {

/// Modules to offload, none within another.
struct OffloadChoice {
  std::vector<std::string> modules;  ///< in the order in which forward calls them
  std::vector<SavedTensor> saved;
  Bytes peak;
  Nanos copies;  ///< time of all copies
};

class OffloadSearch {
 public:
  /// @param least  bytes of the smallest tensor that is copied
  OffloadSearch(const Trace& trace, const Machine& machine, Bytes least);
  OffloadSearch(const OffloadSearch&) = delete;  // steps refer to its uses_
  OffloadSearch& operator=(const OffloadSearch&) = delete;

  /// Choices that fit, with the least copy time first. Each family (module_families()) gives one choice: the smallest
  /// number of its first modules that fits. If no choice fits: only the choice with the least peak; empty if none
  /// lowers the peak.
  std::vector<OffloadChoice> choices(Bytes capacity) const;

  OffloadedStep step(const OffloadChoice& choice) const { return {trace_, uses_, choice.saved}; }

 private:
  OffloadChoice evaluate(std::vector<std::size_t> modules) const;

  const Trace& trace_;
  const Machine& machine_;
  StepUses uses_;
  std::vector<SavedTensor> saved_;
  std::vector<std::string> modules_;  ///< those that save something, in the order in which forward calls them
};

}  // namespace tidepool
