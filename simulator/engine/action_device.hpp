// The device of a run: requests of the pool become actions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "simulator/plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// Counts reserved bytes against the capacity. No address is given out twice: addresses are not scarce.
class ActionDevice final : public Device {
 public:
  /// Receives an action: verb, number of pages (for kMap, number of the page at which the memory begins), address,
  /// size.
  using Record = std::function<void(Verb, std::int64_t /*pages*/, Bytes /*address*/, Bytes /*size*/)>;

  ActionDevice(Bytes capacity, Record record) : capacity_{capacity}, record_{std::move(record)} {}

  std::optional<Bytes> reserve(Bytes size) override {
    const Bytes address = next_address_;
    if (!take(address, size, 0)) return std::nullopt;
    next_address_ += round_up(size, 2_MiB);
    return address;
  }
  void release(Bytes address, Bytes size) override { give_back(address, size, 0); }
  Bytes reserve_addresses(Bytes size) override {
    return std::exchange(next_address_, next_address_ + round_up(size, 2_MiB));
  }
  void release_addresses(Bytes /*address*/, Bytes /*size*/) override {}
  bool map(Bytes address, Bytes size, Bytes page) override { return take(address, size, size / page); }
  void unmap(Bytes address, Bytes size, Bytes page) override { give_back(address, size, size / page); }
  void show(Bytes address, Bytes size, Bytes memory) override { record_(Verb::kMap, memory / kMapPage, address, size); }
  void hide(Bytes address, Bytes size) override { record_(Verb::kUnmap, 0, address, size); }

  Bytes reserved() const { return reserved_; }
  /// Size of the last request for a segment or for memory of a range that the capacity did not allow; 0: none since
  /// forget_refused().
  Bytes refused() const { return refused_; }
  void forget_refused() { refused_ = {}; }

 private:
  /// @param pages  number of pages; 0: a segment
  bool take(Bytes address, Bytes size, std::int64_t pages) {
    if (size > capacity_ - reserved_) return refused_ = size, false;
    reserved_ += size;
    record_(Verb::kReserve, pages, address, size);
    return true;
  }
  void give_back(Bytes address, Bytes size, std::int64_t pages) {
    reserved_ -= size;
    record_(Verb::kRelease, pages, address, size);
  }

  Bytes capacity_;
  Record record_;
  Bytes reserved_, refused_, next_address_;
};

}  // namespace tidepool
