#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracer/native/mapped.hpp"

namespace tidepool::native {

/// Bytes that a storage has now. Content that left keeps its size, so that views of it can be made; it has no address.
inline std::int64_t resident_bytes(const c10::StorageImpl& storage) {
  const bool empty = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks().get() == nullptr;
  return empty ? 0 : static_cast<std::int64_t>(storage.nbytes());
}

/// Gives a storage other memory of PyTorch's allocator, without its content.
inline void allocate(c10::StorageImpl& storage, std::int64_t bytes) {
  const c10::OptionalDeviceGuard guard{storage.device()};
  c10::Allocator* const own = storage.allocator();  // none if the storage began in the pages of a file
  c10::Allocator& allocator = own ? *own : *c10::GetAllocator(storage.device_type());
  storage.set_data_ptr_noswap(allocator.allocate(static_cast<std::size_t>(bytes)));
  storage.set_nbytes(static_cast<std::size_t>(bytes));
}

/// What the buffer of a storage is.
enum class Kind : std::uint8_t {
  kUnknown,  ///< no op has used it
  kHost,     ///< host memory: it is known, and not part of the step
  kEmpty,    ///< it had no bytes
  kDevice,   ///< a buffer of the step
};

/// A storage that has a number. A weak reference keeps its address from being used again.
struct Tracked {
  c10::weak_intrusive_ptr<c10::StorageImpl> weak;
  c10::StorageImpl* storage;
  std::int64_t number;
  std::int64_t watched = -1;  ///< its place in Storages::watched_, -1 if the end of its memory is reported
  bool wrapped = false;
  // Of a job that is compared with a plan (step.hpp):
  Kind kind = Kind::kUnknown;
  bool undefined = false;        ///< it was made without content, and has not been written
  bool told = false;             ///< Python has an object for it, and is told its end
  bool away = false;             ///< its content left for other memory, beside the plan
  std::optional<bool> moves;     ///< whether its content may move although PyTorch refuses to resize it, once asked
  bool pinned = false;           ///< code of the job has the address of its memory
  bool emptied = false;          ///< its memory was freed while it lives: its next use begins another buffer
  std::int64_t bytes = 0;        ///< of its buffer
  std::int64_t counted = 0;      ///< bytes of the meter
  std::int32_t slot = -1;        ///< the trace's buffer that it is in this iteration
  std::int32_t before = -1;      ///< the one that it was at the end of the last iteration
  std::int32_t remembered = -1;  ///< the one that it was at the begin of the iteration after the last whole one
  std::int32_t place = 0;        ///< its use in the call with the number `seen`
  std::int64_t seen = 0;
  std::int64_t used = 0;  ///< number of the call that used it last
};

/// Numbers of live storages, and their ends in order. Not safe for threads: the caller has a lock.
///
/// The memory of a CPU storage gets a deleter that reports its end at once. All others (memory that others own, GPUs)
/// are looked at in turns, some before each op: their end is noticed late.
class Storages {
 public:
  struct Memory {  ///< what the reporting deleter owns
    c10::DataPtr inner;
    c10::StorageImpl* storage;
  };

  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;

  explicit Storages(c10::DeleterFnPtr reporting) : reporting_{reporting} {}

  /// References to storages that have ended. The caller drops them without its lock, since that may end a Python
  /// object, which needs the interpreter's.
  std::vector<Weak> take_dead() { return std::exchange(dead_, {}); }

  void set_exact(bool exact) { exact_ = exact; }

  std::int64_t number_of(c10::StorageImpl* storage) { return track(storage).number; }

  Tracked& track(c10::StorageImpl* storage) {
    auto found = storages_.find(storage);
    if (found == storages_.end()) {
      c10::raw::intrusive_ptr::incref(storage);
      const auto strong = c10::intrusive_ptr<c10::StorageImpl>::reclaim(storage);
      Tracked tracked{Weak(strong), storage, next_++};
      found = storages_.emplace(storage, std::move(tracked)).first;
      numbers_.emplace(found->second.number, &found->second);
      watch(found->second);
    }
    if (exact_ && !found->second.wrapped) wrap(found->second);
    return found->second;
  }

  /// A storage that has a number; null for another.
  const Tracked* known(c10::StorageImpl* storage) const {
    const auto found = storages_.find(storage);
    return found == storages_.end() ? nullptr : &found->second;
  }

  /// A storage by its number; null if it has ended.
  Tracked* find(std::int64_t number) const {
    const auto found = numbers_.find(number);
    return found == numbers_.end() || found->second->weak.expired() ? nullptr : found->second;
  }

  /// Whether the plan may move the content of a storage.
  static bool may_move(Tracked& tracked) {
    if (tracked.pinned || tracked.storage->resizable()) return !tracked.pinned;
    if (!tracked.moves) tracked.moves = is_in_private_file(*tracked.storage);
    return *tracked.moves;
  }

  template <class F>
  void for_each(F&& f) {
    for (auto& [storage, tracked] : storages_) f(tracked);
  }

  /// The memory of a storage is being freed. Calls f with it, or g if it lives on with other memory, or none.
  template <class F, class G>
  void ended(c10::StorageImpl* storage, F&& f, G&& g) {
    const auto found = storages_.find(storage);
    if (found == storages_.end()) return;
    if (!found->second.weak.expired()) {
      found->second.wrapped = false;
      watch(found->second);
      g(found->second);
      return;
    }
    f(found->second);
    forget(found);
  }

  /// Notices the end of a storage's new memory, too.
  void renew(Tracked& tracked) {
    if (exact_ && !tracked.wrapped) wrap(tracked);
  }

  /// Calls f for each of the next `most` storages that have ended unnoticed.
  template <class F>
  void look_around(F&& f, std::size_t most = 64) {
    for (std::size_t i = std::min(most, watched_.size()); i > 0 && !watched_.empty(); --i) {
      if (cursor_ >= watched_.size()) cursor_ = 0;
      Tracked& tracked = *watched_[cursor_];
      if (!tracked.weak.expired()) {
        ++cursor_;
        continue;
      }
      f(tracked);
      forget(storages_.find(tracked.storage));
    }
  }

  /// Gives all memory its own deleter back.
  void release() {
    for (auto& [storage, tracked] : storages_) {
      const auto strong = tracked.wrapped ? tracked.weak.lock() : nullptr;
      if (!strong || strong->_mutable_data_ptr_no_checks().get_deleter() != reporting_) continue;
      c10::DataPtr& pointer = strong->_mutable_data_ptr_no_checks();
      auto* memory = static_cast<Memory*>(pointer.get_context());
      c10::DataPtr inner = std::move(memory->inner);
      pointer.release_context();
      delete memory;
      strong->set_data_ptr_noswap(std::move(inner));
    }
    for (auto& [storage, tracked] : storages_) dead_.push_back(std::move(tracked.weak));
    storages_.clear();
    numbers_.clear();
    watched_.clear();
  }

 private:
  using Found = std::unordered_map<c10::StorageImpl*, Tracked>::iterator;

  void watch(Tracked& tracked) {
    if (tracked.watched >= 0) return;
    tracked.watched = static_cast<std::int64_t>(watched_.size());
    watched_.push_back(&tracked);
  }

  void unwatch(Tracked& tracked) {
    if (tracked.watched < 0) return;
    watched_.back()->watched = tracked.watched;
    watched_[static_cast<std::size_t>(tracked.watched)] = watched_.back();
    watched_.pop_back();
    tracked.watched = -1;
  }

  void forget(Found found) {
    unwatch(found->second);
    dead_.push_back(std::move(found->second.weak));
    numbers_.erase(found->second.number);
    storages_.erase(found);
  }

  /// Only memory of PyTorch's own allocator: the deleter of other memory, as of a shared file, tells PyTorch what it
  /// is.
  void wrap(Tracked& tracked) {
    c10::StorageImpl* storage = tracked.storage;
    if (storage->device_type() != c10::DeviceType::CPU || storage->nbytes() == 0) return;
    c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
    const auto own = c10::GetCPUAllocator()->raw_deleter();
    if (!own || pointer.get_deleter() != own || pointer.get_context() != pointer.get()) return;
    void* data = pointer.get();
    const auto device = pointer.device();
    auto* memory = new Memory{std::move(pointer), storage};
    storage->set_data_ptr_noswap(c10::DataPtr(data, memory, reporting_, device));
    tracked.wrapped = true;
    unwatch(tracked);
  }

  c10::DeleterFnPtr reporting_;
  bool exact_ = false;
  std::int64_t next_ = 1;
  std::unordered_map<c10::StorageImpl*, Tracked> storages_;
  std::unordered_map<std::int64_t, Tracked*> numbers_;
  std::vector<Tracked*> watched_;
  std::vector<Weak> dead_;
  std::size_t cursor_ = 0;
};

}  // namespace tidepool::native
