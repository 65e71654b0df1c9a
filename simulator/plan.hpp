// Plan: the actions on memory and their order, the common language of policies, the timeline and the backends.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool {

enum class Verb : std::uint8_t {
  kReserve,  ///< reserve [offset, offset + size) of the device for a pool: one segment (cudaMalloc) if `subject` is 0,
             ///< else `subject` pages, mapped one by one
  kRelease,  ///< give such a segment or such pages back
  kMap,      ///< map [offset, offset + size) to the reserved memory that begins at page `subject` (address
             ///< kMapPage * subject): a place there uses that memory
  kUnmap,    ///< undo kMap
  kAlloc,    ///< version `subject` gets the place [offset, offset + size), which is empty; only an initial version has
             ///< its content at once. A buffer from before the trace may be swapped in without kAlloc: its initial
             ///< version was on the host when the run began
  kScratch,  ///< the next run writes `subject`, which is resident, again: into this place, which ends with the run
  kFree,     ///< the program does not use version `subject` any more: its place ends, and its host copy too
  kRun,      ///< op `subject` runs, for the first time or again
  kCopy,     ///< version `subject`, which has an empty place, gets a copy of the version that it replaces, on the
             ///< stream of its op, so that the next run can update it there
  kSwapOut,  ///< version `subject` is copied to the host; it stays on the device
  kSwapIn,   ///< version `subject` gets the place [offset, offset + size) and its content from the host
  kDrop,     ///< the place of version `subject` ends before its last use: kSwapIn or kRun brings the version back
  kAwait,    ///< the stream of op `before` waits until all copies of version `subject` under way have ended
  kNext,     ///< iteration `subject` begins: buffers that live before and after the step hold initial versions; the
             ///< other content is gone
};

/// One action on memory. An action before op `before` is issued when the previous op of that stream has ended.
struct Action {
  Verb verb = Verb::kRun;
  OpId before = {};           ///< the op of the program that this action precedes; none: after the last op
  std::uint32_t subject = 0;  ///< kRun: an op; kNext: a number; kReserve, kRelease: pages; kMap: a page;
  ///< kUnmap: unused; otherwise a root version
  Bytes offset = {};  ///< device address, or kNoAddress in a model that only counts bytes
  Bytes size = {};    ///< bytes occupied there, at least the version's size
  bool operator==(const Action&) const = default;
};

/// The unit in which devices map memory; pages of kMap begin at multiples of it.
inline constexpr Bytes kMapPage{std::int64_t{2} << 20};

/// Offset in a model without addresses (the ideal pool).
inline constexpr Bytes kNoAddress{-1};

/// Order in which a plan runs the ops of a step, in place of the recorded one.
struct StepOrder {
  std::string rule;                ///< name of the rule that made the order; only printed
  bool apart = false;              ///< an op on lists of tensors is divided into one op per tensor, see split_foreach()
  std::vector<std::uint32_t> ops;  ///< ops of the recorded step, after this division, in the order in which they run
  bool operator==(const StepOrder&) const = default;
};

/// Actions in issue order. A realised plan lists every run, every offset and every copy.
///
/// A run of an op reads the places of its inputs and writes its outputs. An output that has an empty place is written
/// there. An output that has no place and replaces a version in place (VersionKind kUpdate, or kWrite with a parent)
/// takes over the place of that version, which is gone afterwards. An output that is resident already is written to its
/// scratch place or, without one, over the place of the version that it replaces; either place ends with the run.
struct Plan {
  std::vector<Action> actions;
  /// Times and counts of the plan are means over this many iterations, the last ones. Earlier ones are the lead-in.
  int cycle = 1;
  /// None: the recorded order. Otherwise actions name ops and versions of OrderedStep::trace().
  std::optional<StepOrder> order = {};
  bool operator==(const Plan&) const = default;
};

/// An impossible action in a plan or in the answer of a policy. what() reads "verb subject before op N: reason".
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "drop version 3 before op 12", for messages.
std::string to_text(const Action& action);

}  // namespace tidepool
