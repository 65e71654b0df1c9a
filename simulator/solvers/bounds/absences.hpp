// Intervals of a step in which content of a buffer can be absent from the device.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// An interval between two uses of a buffer whose content is still needed. Positions count ops. In a repeated
/// step of n ops they go on past its end: position n + k is op k of the next iteration, -1 the last op of the previous.
struct Absence {
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  VersionId version = {};
  Bytes size = {};
  std::int64_t first = 0;  ///< it may be absent during the ops [first, last)
  std::int64_t last = 0;
  std::int64_t copied_from = 0;  ///< the op at whose start the content is complete and a copy to the host may begin;
                                 ///< ops may read it meanwhile; kAlways: the host has a copy, unless the content began
                                 ///< on the device
  std::int64_t due = 0;          ///< the op that needs it again (the number of ops: the end); kNever: none does
  OpId producer = {};            ///< the op that made its content; none for content from before the iteration
  BufferId buffer = {};
  /// Index in Absences::beginnings; none if it does not matter where the buffer began. The host has those bytes of the
  /// content that began on it; if `due` is kNever, only these bytes may be absent when the step ends.
  std::optional<std::size_t> beginning = {};

  bool operator==(const Absence&) const = default;
};

/// A buffer from before a step that is not repeated. A plan may let it begin on the host; then it is copied in before
/// its first read, and the host has a copy of it between later reads. If it began on the device, the host has none.
struct Beginning {
  Bytes size = {};
  std::int64_t due = 0;  ///< the first op that uses the buffer; this op reads it

  bool operator==(const Beginning&) const = default;
};

/// The load and the possible absences of a step. Content that no op will read counts as absent already. So does the
/// initial content of a buffer that the step allocates: a new allocation brings it back.
struct Absences {
  std::vector<Nanos> starts;      ///< by op, in a step without waiting; the last entry is the end
  std::vector<Bytes> load;        ///< by op: bytes of all content in use or needed later, also if it is absent
  std::vector<Absence> absences;  ///< in no order
  std::vector<Beginning> beginnings = {};
};

/// For a trace with one stream. With `repeats`, content that exists before and after the step is carried over from each
/// iteration to the next. Without `repeats`, content from before the step may have begun on the host; content that
/// outlives the step must be on the device at its end, unless it is from before the step. O(uses log uses).
Absences find_absences(const Trace& trace, bool repeats);

}  // namespace tidepool
