// Repetition in a step: micro-batches of layers of blocks of ops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The same ops several times in a row: copy c is made of the ops from `first` + c * `period` on.
struct Repeat {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t first = 0, period = 0, copies = 0;  ///< ops
  std::uint32_t outer = kNone;                      ///< index of the repeat whose first copy this one is in
  std::uint32_t last() const { return first + period * copies; }
  bool operator==(const Repeat&) const = default;
};

/// A step folded: of every repeat only the first copy is looked into.
struct Structure {
  std::vector<Repeat> repeats;      ///< outer ones before those in them, else by first op
  std::vector<std::uint32_t> like;  ///< by op: the first op that it is a copy of; itself if it is the first
  std::size_t distinct = 0;         ///< ops that are a copy of no other
};

/// When two ops count as the same.
enum class Alike : std::uint8_t {
  kUses,      ///< name, kind, phase, stream, and access, size and kind of every buffer used in order
  kDuration,  ///< and duration
};

/// By op: a number that two ops share if they are alike.
std::vector<std::uint32_t> op_letters(const Trace& trace, Alike alike);

/// Of the runs of the step's ops the one that covers most is taken first, of what is left of the others then the next,
/// as long as one covers eight ops or more; and the same in the first copy of each. Where a repeat could begin at
/// several ops it begins where the module changes, if it does at one. O(n log n). Chance equality of hashes is found
/// out: what it would repeat is left alone.
Structure find_structure(const Trace& trace, Alike alike = Alike::kUses);

/// The same for any string of letters, whose places are what is called ops above.
/// @param begins  by letter: whether something else begins there, as a module does
Structure find_structure(std::span<const std::uint32_t> letters, const std::vector<bool>& begins);

}  // namespace tidepool
