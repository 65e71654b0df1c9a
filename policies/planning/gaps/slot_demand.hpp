// The number of slots of each size that a step needs.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/slot_pool.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The sizes of a step's buffers, rounded up, with the number of buffers of each that are used and live at once. A
/// class has the sizes above the slot of the previous class, up to its own slot.
class SlotDemand {
 public:
  /// @param granule  sizes are multiples of it
  SlotDemand(const Trace& trace, const Assumptions& assume, Bytes granule);

  /// Distinct, in ascending order.
  const std::vector<Bytes>& sizes() const { return sizes_; }
  /// By class: the most buffers that one op uses. Fewer slots are not enough.
  std::vector<std::uint32_t> least(const SlotClasses& classes) const;
  /// By class and op: the most buffers live from the end of the op before it to its own end.
  std::vector<std::vector<Bytes>> live(const SlotClasses& classes) const;

 private:
  std::vector<std::size_t> classes_of_sizes(const SlotClasses& classes) const;

  const Trace& trace_;
  std::vector<Bytes> sizes_;
  std::vector<std::uint32_t> size_of_;  // by buffer: an index of sizes_
  std::vector<std::uint32_t> used_;     // by op, one op after the other: the same index of the buffers that it uses
  std::vector<std::size_t> first_used_;
};

}  // namespace tidepool
