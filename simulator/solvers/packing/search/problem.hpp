// An instance reduced to the facts that decide heights: sections instead of positions, units instead of bytes. Heights
// below which no layout exists.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

/// The items that have bytes, in units. In a layout in which every item rests on another or on the ground, an offset is
/// the sum of sizes above 0 or above a fixed top, rounded up to alignments. So offsets are multiples of the unit, the
/// greatest common divisor of sizes, fixed offsets and of those alignments that do not divide all sizes and fixed
/// offsets (the others round nothing up).
struct PackingProblem {
  struct Piece {
    std::int64_t size = 0;
    std::int64_t alignment = 1;
    std::int64_t fixed = -1;  ///< -1: wherever it fits
    std::uint32_t first = 0;  ///< ranges [first, last)
    std::uint32_t last = 0;
    std::uint32_t kind = 0;  ///< equal for pieces that differ in `item` only
    std::uint32_t item = 0;  ///< index of the item in the instance
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

/// A problem of the chosen pieces. A section is dropped if all chosen pieces in it also live in one other section; the
/// other sections keep their order. The kinds are numbered anew.
PackingProblem part_of(const PackingProblem& problem, std::span<const std::uint32_t> chosen);

/// A lower bound on the height of every layout, in units of the problem.
struct HeightBound {
  std::int64_t height = 0;
  std::string proof;
};

/// The largest sum of sizes in a section: pieces that live in one section lie one above the other in every layout.
HeightBound load_bound(const PackingProblem& problem);

/// A bound for sections with fixed pieces. Below the highest fixed piece, the other pieces have only those holes
/// that are large enough for the smallest of these pieces. What exceeds these holes lies above the highest fixed
/// piece; the top of that piece is itself a bound.
HeightBound fixed_bound(const PackingProblem& problem);

/// The highest of all bounds.
HeightBound height_bound(const PackingProblem& problem);

}  // namespace tidepool
