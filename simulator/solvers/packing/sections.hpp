// Sections of time: the maximal sets of items that live together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/instance.hpp"

namespace tidepool {

/// Sections [first, last).
struct SectionRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool operator==(const SectionRange&) const = default;
};

/// A section is a set of items that live together and to which no item could be added: each end that follows a
/// beginning closes a section. Two items live together at some position exactly if they share a section, and there are
/// at most as many sections as intervals (Moffitt & Pollack, "Optimal rectangle packing: a meta-CSP approach", ICAPS
/// 2006, call them maximal cliques of the interval graph). Items of no bytes are in none.
class Sections {
 public:
  explicit Sections(const Instance& instance);

  std::uint32_t count() const { return count_; }
  /// The sections of an item: ascending ranges with at least one section between two of them,
  /// so intervals without a section between them are one range.
  std::span<const SectionRange> of(std::uint32_t item) const {
    return std::span{ranges_}.subspan(first_[item], first_[item + 1] - first_[item]);
  }

 private:
  std::uint32_t count_ = 0;
  std::vector<SectionRange> ranges_;
  std::vector<std::uint32_t> first_;
};

}  // namespace tidepool
