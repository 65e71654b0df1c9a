// A device with recorded addresses.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>

#include "simulator/engine/segment_device.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

/// A SegmentDevice whose segments get the recorded addresses, in the recorded order, if there are any.
class RecordedDevice final : public Device {
 public:
  RecordedDevice(Bytes capacity, std::span<const Bytes> addresses) : counted_{capacity}, addresses_{addresses} {}

  /// @throws InputError  "the pool asks for segment number 66, of 512 B; 65 addresses are recorded"
  std::optional<Bytes> reserve(Bytes size) override {
    const std::optional<Bytes> modelled = counted_.reserve(size);
    if (addresses_.empty() || !modelled) return modelled;
    if (given_ == addresses_.size())
      throw InputError{fmt::format("the pool asks for segment number {}, of {} B; {} addresses are recorded",
                                   given_ + 1, size.count(), given_)};
    const Bytes address = addresses_[given_++];
    modelled_.emplace(address, *modelled);
    return address;
  }
  void release(Bytes address, Bytes size) override {
    const auto found = modelled_.find(address);
    counted_.release(found == modelled_.end() ? address : found->second, size);
    if (found != modelled_.end()) modelled_.erase(found);
  }
  Bytes reserve_addresses(Bytes size) override { return counted_.reserve_addresses(size); }
  void release_addresses(Bytes address, Bytes size) override { counted_.release_addresses(address, size); }
  bool map(Bytes address, Bytes size, Bytes page) override { return counted_.map(address, size, page); }
  void unmap(Bytes address, Bytes size, Bytes page) override { counted_.unmap(address, size, page); }

  Bytes most_reserved() const { return counted_.most_reserved(); }

 private:
  SegmentDevice counted_;
  std::span<const Bytes> addresses_;
  std::size_t given_ = 0;
  std::map<Bytes, Bytes> modelled_;  // by recorded address: the address in counted_
};

}  // namespace tidepool
