// A pool of slots of fixed sizes: each class of sizes has a fixed number of slots, as a step needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "simulator/pool.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct SlotClass {
  Bytes slot;  ///< bytes of each slot
  std::uint32_t count = 0;
  bool operator==(const SlotClass&) const = default;
};

/// In ascending order of slot size.
using SlotClasses = std::vector<SlotClass>;

/// The class with the smallest slots that a size fits; the number of classes if there is none.
inline std::size_t class_of(const SlotClasses& classes, Bytes size) {
  return static_cast<std::size_t>(std::lower_bound(classes.begin(), classes.end(), size,
                                                   [](const SlotClass& each, Bytes s) { return each.slot < s; }) -
                                  classes.begin());
}

/// Serves a request with the lowest free slot of its class, or not at all. The address ranges of classes follow each
/// other. O(log slots) per request.
class SlotPool final : public Pool {
 public:
  explicit SlotPool(SlotClasses classes) : classes_{std::move(classes)} {}

  void start(const Trace&, Bytes, Device&) override {
    free_.assign(classes_.size(), {});
    begin_.clear();
    Bytes begin;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      begin_.push_back(begin);
      begin += classes_[c].slot * classes_[c].count;
      for (std::uint32_t slot = 0; slot < classes_[c].count; ++slot) free_[c].push(slot);
    }
  }
  std::optional<Block> place(const Request& request) override {
    const std::size_t c = class_of(classes_, request.size);
    if (c == classes_.size() || free_[c].empty()) return {};
    const std::uint32_t slot = free_[c].top();
    free_[c].pop();
    return Block{begin_[c] + classes_[c].slot * slot, classes_[c].slot, slot};
  }
  void release(const Block& block) override { free_[class_of(classes_, block.size)].push(block.tag); }
  Bytes largest_hole() const override {
    for (std::size_t c = classes_.size(); c-- > 0;)
      if (!free_[c].empty()) return classes_[c].slot;
    return {};
  }

 private:
  using Free = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
  SlotClasses classes_;
  std::vector<Bytes> begin_;  // by class
  std::vector<Free> free_;    // by class
};

/// The sizes of a step's buffers, rounded up, and how many buffers of each size are used or live at once. A class of
/// slots serves the sizes above the previous class's slot, up to its own slot.
class SlotDemand {
 public:
  /// @param trace    must outlive this
  /// @param granule  sizes are rounded up to its multiples; a size of 0, to one granule
  SlotDemand(const Trace& trace, const Assumptions& assume, Bytes granule);

  /// Distinct, in ascending order.
  const std::vector<Bytes>& sizes() const { return sizes_; }
  /// By class: the most buffers that one op uses. A pool needs at least as many slots. Each size must fit a class.
  std::vector<std::uint32_t> least(const SlotClasses& classes) const;
  /// By class and op: the most buffers that are live between the end of the previous op and the end of the op. A number
  /// is stored as Bytes, 1 B for each buffer. Each size must fit a class.
  std::vector<std::vector<Bytes>> live(const SlotClasses& classes) const;

 private:
  std::vector<std::size_t> classes_of_sizes(const SlotClasses& classes) const;

  const Trace& trace_;
  std::vector<Bytes> sizes_;
  std::vector<std::uint32_t> size_of_;  // by buffer: an index into sizes_
  std::vector<std::uint32_t> used_;     // indices of the sizes of the buffers that ops use, one op after the other
  std::vector<std::size_t> first_used_;
};

}  // namespace tidepool
