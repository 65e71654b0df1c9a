// Plan: the actions on memory and their order, the common language of policies, the timeline and the backends.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/ids.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

enum class Verb : std::uint8_t {
  kReserve,  ///< take [offset, offset + size) from the device for a pool: a segment (cudaMalloc) if `subject` is 0,
             ///< else so many pages one by one (map)
  kRelease,  ///< give it back, likewise
  kMap,      ///< the addresses [offset, offset + size) show the memory that is reserved from page `subject` on (address
             ///< kMapPage * subject): a place there takes that memory
  kUnmap,    ///< they do no longer
  kAlloc,    ///< version `subject` gets the place [offset, offset + size): empty, except that an initial version brings
             ///< its content. An initial version of a buffer from before the trace that is swapped in without an alloc
             ///< was on the host when the run began
  kScratch,  ///< the next run writes `subject` a second time; that copy goes to this place, which ends with the run
  kFree,     ///< the program has no further use for version `subject`: its place ends, and its host copy too
  kRun,      ///< op `subject` runs, for the first time or again
  kCopy,     ///< version `subject`, which has an empty place, gets a copy of the version that it replaces, on the
             ///< stream of its op, so that the next run can update it there
  kSwapOut,  ///< version `subject` is copied to the host; it stays on the device
  kSwapIn,   ///< version `subject` gets the place [offset, offset + size) and its content from the host
  kDrop,     ///< the place of version `subject` ends although it is still of use: it comes back by kSwapIn or kRun
  kAwait,    ///< the stream of op `before` goes on when the copies of version `subject` that are under way have ended
  kNext,  ///< iteration `subject` begins: what outlives the step becomes what existed before it, and all else is gone
};

/// One decision, a value. What stands before op `before` is issued when the op before it on its stream has ended.
struct Action {
  Verb verb = Verb::kRun;
  OpId before = {};           ///< the op of the program in front of which this is done; none: after the last op
  std::uint32_t subject = 0;  ///< kRun: an op; kNext: a number; kReserve, kRelease: pages; kMap: a page;
  ///< kUnmap: unused; otherwise a root version
  Bytes offset = {};  ///< device address, or kNoAddress in a model that only counts bytes
  Bytes size = {};    ///< bytes occupied there, at least the version's size
  bool operator==(const Action&) const = default;
};

/// What devices map at once; pages of kMap begin at multiples of it.
inline constexpr Bytes kMapPage{std::int64_t{2} << 20};

/// Offset in a model without addresses (the ideal pool).
inline constexpr Bytes kNoAddress{-1};

/// Actions in issue order. A realised plan is total: every run, every offset, every copy.
///
/// A run of an op reads the places of its inputs and writes its outputs. An output that has an empty place is written
/// there. An output that replaces a version in place (VersionKind kUpdate or kWrite with a parent) and has no place of
/// its own takes over the place of that version, which is gone afterwards. An output that has its content already is
/// written to the scratch place given for it, or else over the place of the version that it replaces; either ends with
/// the run.
struct Plan {
  std::vector<Action> actions;
  /// Times and counts of the plan are means over this many iterations, the last ones. Those before lead up to them.
  int cycle = 1;
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
