// Pool that owns the whole memory of the device.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "simulator/engine/pools/arena.hpp"
#include "simulator/option_values.hpp"

namespace tidepool {

/// The device's memory as one arena, [0, capacity). Sizes are rounded up to the alignment. A request of 0 bytes gets a
/// place of one alignment unit, so that all places are distinct.
template <class Index>
class ArenaPool final : public Pool {
 public:
  /// @param owner  the pool's name, for the message
  ArenaPool(const std::string& owner, const Options& options) : alignment_{size_of(owner, options, "alignment")} {}

  void start(const Trace&, Bytes capacity, Device&) override {
    capacity_ = capacity;
    arena_.emplace(capacity);
  }

  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    const Bytes size = std::max(rounded(request.size), alignment_);
    const auto taken = arena_->place(size);
    if (!taken) return {};
    return Block{taken->address, size, taken->node};
  }

  void release(const Block& block) override { arena_->release(block.tag); }
  Bytes largest_hole() const override { return arena_->largest_hole(); }

 private:
  /// The size rounded up to the alignment. Needs no division if the alignment is a power of two.
  Bytes rounded(Bytes size) const {
    const std::int64_t below = alignment_.count() - 1;
    return (alignment_.count() & below) == 0 ? Bytes{(size.count() + below) & ~below} : round_up(size, alignment_);
  }

  Bytes alignment_;
  Bytes capacity_;
  std::optional<Arena<Index>> arena_;
};

}  // namespace tidepool
