// What is done to memory, and when: the common language of policies, the timeline and the backends.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/ids.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

enum class Verb : std::uint8_t {
  kReserve,  ///< take [offset, offset + size) from the device for a pool (cudaMalloc or map)
  kRelease,  ///< give it back
  kAlloc,    ///< version `subject` gets the empty place [offset, offset + size)
  kScratch,  ///< the next run writes `subject` a second time; that copy goes to this place, which ends with the run
  kFree,     ///< the program has no further use for version `subject`: its place ends, and its host copy too
  kRun,      ///< op `subject` runs, for the first time or again
  kCopy,     ///< the content of version `subject` is copied within the device to the place of the version that the
             ///< next run makes from it in place
  kSwapOut,  ///< version `subject` is copied to the host; it stays on the device
  kSwapIn,   ///< version `subject` gets the place [offset, offset + size) and its content from the host
  kDrop,     ///< the place of version `subject` ends although it is still of use: it comes back by kSwapIn or kRun
};

/// One decision, a value. What stands before op `before` is issued when the op before it on its stream has ended.
struct Action {
  Verb verb = Verb::kRun;
  OpId before = {};                ///< the op of the program in front of which this is done; none: after the last op
  std::uint32_t subject = 0;  ///< kRun: an op; kReserve, kRelease: unused; otherwise a version
  Bytes offset = {};               ///< device address, or kNoAddress in a model that only counts bytes
  Bytes size = {};                 ///< bytes occupied there, at least the version's size
  bool operator==(const Action&) const = default;
};

/// Offset in a model without addresses (the ideal pool).
inline constexpr Bytes kNoAddress{-1};

/// Actions in issue order. A realised plan is total: every run, every offset, every copy.
struct Plan {
  std::vector<Action> actions;
  bool operator==(const Plan&) const = default;
};

/// A plan or a policy asks for what cannot be done. what() reads "verb subject before op N: reason".
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "drop version 3 before op 12", for messages.
std::string to_text(const Action& action);

}  // namespace tidepool
