// An instance reduced to what decides about heights: sections instead of positions, units instead of bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/packing/sections.hpp"

namespace tidepool {

/// Items of some bytes, scaled. In a layout in which every item rests on another or on the ground, offsets are sums of
/// sizes above 0 or a fixed top, rounded up to alignments: a common divisor of all of those divides them too. An
/// alignment that divides sizes and fixed offsets rounds nothing up, unless others do.
struct PackingProblem {
  struct Piece {
    std::int64_t size = 0;
    std::int64_t alignment = 1;
    std::int64_t fixed = -1;  ///< -1: wherever it fits
    std::uint32_t first = 0;  ///< ranges [first, last)
    std::uint32_t last = 0;
    std::uint32_t kind = 0;  ///< equal for pieces that differ in nothing
    std::uint32_t item = 0;  ///< of the instance
  };

  std::int64_t unit = 1;  ///< bytes
  std::uint32_t sections = 0;
  std::vector<Piece> pieces;
  std::vector<SectionRange> ranges;
  bool has_fixed = false;
  bool has_gaps = false;
  bool has_alignment = false;

  std::span<const SectionRange> lives(const Piece& piece) const {
    return std::span{ranges}.subspan(piece.first, piece.last - piece.first);
  }
  /// Sum of the sizes in each section.
  std::vector<std::int64_t> loads() const;
};

PackingProblem reduce(const Instance& instance, const Sections& sections);

/// The pieces chosen, with the sections that they leave: the numbers of those that are not part of another are kept in
/// order, the others are dropped. `kind` is counted anew.
PackingProblem part_of(const PackingProblem& problem, std::span<const std::uint32_t> chosen);

}  // namespace tidepool
