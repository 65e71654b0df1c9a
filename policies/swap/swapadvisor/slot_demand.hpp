// The number of slots of each size that a step needs.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/swap/swapadvisor/slot_pool.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

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
