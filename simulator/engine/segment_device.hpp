// A device's own allocator, as pools see it.
#pragma once

#include <algorithm>
#include <optional>

#include "simulator/engine/pools/address_index.hpp"
#include "simulator/engine/pools/address_map.hpp"
#include "simulator/engine/pools/arena.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// Counts reserved bytes against a capacity and gives every segment and every range of addresses the lowest free
/// addresses that begin at a multiple of 2 MiB, the page size of known GPUs. The rules by which real drivers choose
/// addresses are not published. A pool whose answers depend on the order of addresses is exact only if these were
/// recorded (`tidepool audit`).
class SegmentDevice final : public Device {
 public:
  /// @param capacity  most bytes that can be reserved and mapped at once
  explicit SegmentDevice(Bytes capacity) : capacity_{capacity} {}

  std::optional<Bytes> reserve(Bytes size) override {
    if (size > capacity_ - reserved_) return {};
    count(size);
    return take(size);
  }
  void release(Bytes address, Bytes size) override {
    reserved_ -= size;
    give_back(address);
  }
  Bytes reserve_addresses(Bytes size) override { return take(size); }
  void release_addresses(Bytes address, Bytes /*size*/) override { give_back(address); }
  bool map(Bytes /*address*/, Bytes size, Bytes /*page*/) override {
    if (size > capacity_ - reserved_) return false;
    count(size);
    return true;
  }
  void unmap(Bytes /*address*/, Bytes size, Bytes /*page*/) override { reserved_ -= size; }

  Bytes reserved() const { return reserved_; }
  Bytes most_reserved() const { return most_reserved_; }

 private:
  static constexpr Bytes kPage{std::int64_t{2} << 20};
  static constexpr Bytes kAddressSpace{std::int64_t{1} << 62};

  void count(Bytes size) {
    reserved_ += size;
    most_reserved_ = std::max(most_reserved_, reserved_);
  }
  Bytes take(Bytes size) {
    const auto taken = addresses_.place(round_up(size, kPage)).value();
    nodes_.insert(taken.address, taken.node);
    return taken.address;
  }
  void give_back(Bytes address) { addresses_.release(nodes_.take(address)); }

  Bytes capacity_, reserved_, most_reserved_;
  Arena<AddressIndex> addresses_{kAddressSpace};
  AddressMap nodes_;  // of addresses_, by address
};

}  // namespace tidepool
