// Nested repetition in a step: micro-batches, the layers in a micro-batch, the blocks of ops in a layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The same ops several times in a row: copy c begins with op `first` + c * `period`.
struct Repeat {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t first = 0, period = 0, copies = 0;  ///< the first op, ops of a copy, and number of copies
  std::uint32_t outer = kNone;                      ///< index of the repeat whose first copy this one is in
  std::uint32_t last() const { return first + period * copies; }
  bool operator==(const Repeat&) const = default;
};

/// The nested repeats of a step. Repeats inside a repeat are those of its first copy.
struct Structure {
  std::vector<Repeat> repeats;      ///< outer ones before those in them; those of one outer one by first op
  std::vector<std::uint32_t> like;  ///< by op: the first op that it is a copy of; itself if it is the first
  std::size_t distinct = 0;         ///< number of ops that are a copy of no other
};

/// The properties in which two ops must agree to count as the same.
enum class Alike : std::uint8_t {
  kUses,      ///< name, kind, phase and stream; access, size and kind of each used buffer, in the order of the uses
  kDuration,  ///< those of kUses, and duration
};

/// By op: a number that is equal for two ops exactly if they are alike.
std::vector<std::uint32_t> op_letters(const Trace& trace, Alike alike);

/// Finds the repeats of a step greedily. Among the periodic parts of the step's ops (see periodic_parts), it takes the
/// part that covers most ops. It goes on with the ops that are left, until no part covers eight ops or more. Then it
/// does the same within the first copy of each repeat. If a repeat could begin at several ops, it begins at one where
/// the module changes, if there is one. Candidates are compared op by op, so that a collision of hashes gives no wrong
/// repeat. O(n log n).
Structure find_structure(const Trace& trace, Alike alike = Alike::kUses);

/// find_structure() for any string of letters in the place of ops.
/// @param begins  by letter: whether a unit, such as a module, begins there
Structure find_structure(std::span<const std::uint32_t> letters, const std::vector<bool>& begins);

}  // namespace tidepool
