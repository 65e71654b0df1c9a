// What the pools that own the whole device have in common.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "simulator/options.hpp"
#include "simulator/pools/arena.hpp"
#include "traces/error.hpp"

namespace tidepool {

/// The device's memory as one arena, [0, capacity). Sizes are rounded up to the alignment; a request of no bytes gets a
/// place of one granule, so that every place is distinct.
template <class Index>
class ArenaPool final : public Pool {
 public:
  /// @param owner  the pool's name, for the message
  ArenaPool(const std::string& owner, const Options& options) : alignment_{options.bytes("alignment")} {
    if (alignment_ <= Bytes{}) throw InputError{owner + ": option 'alignment' is '0B'; expected at least 1B"};
  }

  void start(const Trace&, Bytes capacity, Device&) override {
    capacity_ = capacity;
    arena_.emplace(capacity);
  }

  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    const Bytes size = std::max(round_up(request.size, alignment_), alignment_);
    const std::optional<Bytes> offset = arena_->place(size);
    if (!offset) return {};
    return Block{*offset, size};
  }

  void release(const Block& block) override { arena_->release(block.offset); }
  Bytes largest_hole() const override { return arena_->largest_hole(); }

 private:
  Bytes alignment_;
  Bytes capacity_;
  std::optional<Arena<Index>> arena_;
};

}  // namespace tidepool
