#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tracer/native/call.hpp"
#include "tracer/native/cells.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

/// Events, as words of 64 bits: kind, number of words, and the fields below. tidepool_torch/replay.py reads them.
enum Event : std::int64_t {
  /// A call has returned: op, thread, in backward, newest node, node, variable, line; begin, end (ns); Flag; then
  /// lists, each with its length first. Storages (number, bytes, address, device): from before the recording; with
  /// another size than before; new. Ops of the step: name, work, uses (storage, access). With kValues, arguments and
  /// results.
  kCall = 1,
  kFree = 3,     ///< storage, time (ns), thread
  kNode = 4,     ///< thread, in backward, newest node, line: a view that autograd records
  kEmptied = 5,  ///< storage, time (ns), thread: it lives on without the memory that it had
};

enum Flag : std::int64_t {
  kRandom = 1,         ///< the op draws random numbers
  kBringsAll = 2,      ///< all content comes from the host
  kUninitialised = 4,  ///< the new storages have no content
  kValues = 8,
};

/// Values of arguments and results.
enum Value : std::int64_t {
  kNone = 0,    ///< no word more; values that no one needs, such as texts, are none too
  kInt = 1,     ///< value
  kBool = 2,    ///< value
  kDouble = 3,  ///< bits
  kList = 4,    ///< length, values
  kTensor = 5,  ///< storage, its bytes, its address, the description below, sizes, strides
};

/// The words of a log, and what a tensor or another value is in words.
class Log {
 public:
  explicit Log(Storages& storages) : storages_{storages} { words_.reserve(1 << 20); }

  void begin(Event kind) {
    start_ = words_.size();
    words_.push_back(kind);
    words_.push_back(0);
  }

  template <class... Words>
  void add(Words... words) {
    (words_.push_back(static_cast<std::int64_t>(words)), ...);
  }

  void end() {
    words_[start_ + 1] = static_cast<std::int64_t>(words_.size() - start_);
    tidepool_cells[kWords] = static_cast<std::int64_t>(words_.size());
  }

  /// Undoes begin(), for a value that cannot be written.
  void cancel() { words_.resize(start_); }

  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isInt()) {
      add(kInt, value.toInt());
    } else if (value.isBool()) {
      add(kBool, value.toBool());
    } else if (value.isDouble()) {
      const double number = value.toDouble();
      std::int64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      add(kDouble, bits);
    } else if (value.isList()) {
      const auto list = value.toListRef();
      add(kList, list.size());
      for (const auto& each : list) add(each);
    } else if (value.isTuple()) {
      const auto& elements = value.toTupleRef().elements();
      add(kList, elements.size());
      for (const auto& each : elements) add(each);
    } else {
      add(kNone);
    }
  }

  void add(const at::Tensor& tensor) {
    if (!tensor.defined()) return add(kNone);
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (impl->is_wrapped_number()) return add(kNone);  // a number of Python
    const c10::Device device = impl->device();
    const bool placed = impl->has_storage() && tensor.layout() == c10::kStrided;
    // From the lowest byte: device type, device index + 1, element type, element size, dimensions, layout
    std::int64_t description = static_cast<std::int64_t>(device.type()) | std::int64_t{device.index() + 1} << 8 |
                               static_cast<std::int64_t>(tensor.scalar_type()) << 16 |
                               static_cast<std::int64_t>(impl->itemsize()) << 24 |
                               static_cast<std::int64_t>(tensor.layout()) << 40;
    if (!placed) return add(kTensor, 0, 0, 0, description);
    if (impl->has_symbolic_sizes_strides()) throw std::runtime_error("a tensor has sizes that are no numbers");
    c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
    const auto sizes = impl->sizes(), strides = impl->strides();
    description |= static_cast<std::int64_t>(sizes.size()) << 32;
    const auto address = reinterpret_cast<std::int64_t>(storage->_mutable_data_ptr_no_checks().get());
    const bool meta = device.type() == c10::DeviceType::Meta;
    add(kTensor, storages_.number_of(storage), meta ? 0 : storage->nbytes(), address, description);
    words_.insert(words_.end(), sizes.begin(), sizes.end());
    words_.insert(words_.end(), strides.begin(), strides.end());
  }

  void add(const Tracked& tracked) {
    const auto device = tracked.storage->device();
    const auto address = reinterpret_cast<std::int64_t>(tracked.storage->_mutable_data_ptr_no_checks().get());
    add(tracked.number, tracked.bytes, address,
        static_cast<std::int64_t>(device.type()) | std::int64_t{device.index() + 1} << 8);
  }

  void add(const std::vector<std::int64_t>& words) { words_.insert(words_.end(), words.begin(), words.end()); }

  void swap(std::vector<std::int64_t>& other) { words_.swap(other); }

  /// The words of some values.
  std::vector<std::int64_t> described(const Stack& stack, std::size_t count) {
    std::vector<std::int64_t> found;
    words_.swap(found);
    for (std::size_t i = stack.size() - count; i < stack.size(); ++i) add(stack[i]);
    words_.swap(found);
    return found;
  }

 private:
  Storages& storages_;
  std::vector<std::int64_t> words_;
  std::size_t start_ = 0;
};

}  // namespace tidepool::native
