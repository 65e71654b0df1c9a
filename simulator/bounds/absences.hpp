// Instants at which content of a step can be away from the device.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A stretch between two uses of a buffer whose content is still needed. Positions count ops; in a step that is
/// repeated they go on past its end: position n + k is op k of the next iteration, -1 the last of the one before.
struct Absence {
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  VersionId version = {};
  Bytes size = {};
  std::int64_t first = 0;  ///< it may be away during the ops [first, last)
  std::int64_t last = 0;
  std::int64_t copied_from = 0;  ///< a copy to the host may begin where this op would, once the content is
                                 ///< complete, also while ops read it; kAlways: the host has one; content that began
                                 ///< on the device has none
  std::int64_t due = 0;          ///< needed again by this op (the number of ops: at the end); kNever: not any more
  OpId producer = {};            ///< made its content; none for content from before the step
  BufferId buffer = {};
  /// In Absences::beginnings: its bytes that began on the host are there already; if `due` is kNever, only those may
  /// stay away when the step ends. None where that does not matter.
  std::optional<std::size_t> beginning = {};

  bool operator==(const Absence&) const = default;
};

/// A buffer from before a step that is not repeated: a plan may let it begin on the host. It comes from there before it
/// is read for the first time, and what an op reads between two uses has no copy there unless it came from there.
struct Beginning {
  Bytes size = {};
  std::int64_t due = 0;  ///< the first op that uses it, which reads it

  bool operator==(const Beginning&) const = default;
};

/// A step as transfers see it. Content that no op will read is taken to be away already, and so is what a buffer came
/// with when it was allocated in the step: allocating it again brings that back.
struct Absences {
  std::vector<Nanos> starts;      ///< by op, of a step that waits for nothing; one more: the end
  std::vector<Bytes> load;        ///< by op: content in use or needed later, absences included
  std::vector<Absence> absences;  ///< in no order
  std::vector<Beginning> beginnings = {};
};

/// Of a trace with one stream. With `repeats`, what is there before the step and after it is carried over from each
/// iteration to the next; without, what was there before may have begun on the host, and what the step leaves behind
/// must be back at its end unless it was there before. O(uses log uses).
Absences find_absences(const Trace& trace, bool repeats);

}  // namespace tidepool
