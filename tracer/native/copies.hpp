#pragma once

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "tracer/native/recipe.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

using StoragePtr = c10::intrusive_ptr<c10::StorageImpl>;
using EventPtr = std::shared_ptr<c10::Event>;  // null on the CPU, where a copy is made at once

/// Copies of content between a device and the host, as those of tidepool_live/device.py.
class Copies {
 public:
  /// Larger copies on the CPU are made by Python, in another thread.
  static constexpr std::int64_t kAtOnce = 1 << 20;

  explicit Copies(c10::Device device) : device_{device} {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl guard{device.type()};
    out_ = guard.getStreamFromGlobalPool(device);
    in_ = guard.getStreamFromGlobalPool(device);
  }

  bool can_copy(std::int64_t bytes) const { return !device_.is_cpu() || bytes < kAtOnce; }
  bool is_cpu() const { return device_.is_cpu(); }

  /// Memory of the host with a copy of a storage's content.
  std::pair<StoragePtr, EventPtr> out(c10::StorageImpl& source) const {
    const BelowAll below;
    const auto bytes = static_cast<std::int64_t>(source.nbytes());
    const at::Tensor host = at::empty({bytes}, at::TensorOptions().dtype(c10::kByte).pinned_memory(!device_.is_cpu()));
    EventPtr end = copy(host, whole(source), out_, nullptr);
    return {host.storage().getWeakStorageImpl().lock(), std::move(end)};
  }

  /// Fills the memory of a storage with the host's bytes, behind the copy that made them.
  EventPtr in(c10::StorageImpl& target, c10::StorageImpl& host, const EventPtr& after) const {
    const BelowAll below;
    return copy(whole(target), whole(host), in_, after.get());
  }

  /// What comes next on the device waits for an event.
  void wait(const c10::Event& event) const {
    event.block(c10::impl::VirtualGuardImpl{device_.type()}.getStream(device_));
  }

 private:
  static at::Tensor whole(c10::StorageImpl& storage) {
    c10::raw::intrusive_ptr::incref(&storage);
    c10::Storage shared{StoragePtr::reclaim(&storage)};
    at::Tensor made = at::empty({0}, at::TensorOptions().dtype(c10::kByte).device(storage.device()));
    return made.set_(std::move(shared), 0, {static_cast<std::int64_t>(storage.nbytes())}, {1});
  }

  EventPtr copy(const at::Tensor& target, const at::Tensor& source, const std::optional<c10::Stream>& lane,
                const c10::Event* after) const {
    if (device_.is_cpu()) {
      target.copy_(source);
      return nullptr;
    }
    const c10::impl::VirtualGuardImpl guard{device_.type()};
    c10::Event begin{device_.type()};
    begin.record(guard.getStream(device_));
    begin.block(*lane);
    if (after) after->block(*lane);
    const c10::Stream before = guard.exchangeStream(*lane);
    target.copy_(source, true);
    auto end = std::make_shared<c10::Event>(device_.type());
    end->record(*lane);
    guard.exchangeStream(before);
    return end;
  }

  c10::Device device_;
  std::optional<c10::Stream> out_, in_;
};

}  // namespace tidepool::native
