#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tracer/native/operators.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

/// A tensor argument of a call. Its storage is kept, so that it has not ended when the call has returned.
struct Given {
  c10::intrusive_ptr<c10::StorageImpl> storage;
  Tracked* tracked;
  Access access;
  bool statistic;
  std::int64_t bytes;     ///< of the storage before the call
  std::int64_t distinct;  ///< bytes of the tensor's elements
  std::int64_t dimensions;
};

/// One use of a buffer by an op.
struct BufferUse {
  Tracked* tracked;
  Access access;
};

/// What an op does beside its uses, as in tidepool_torch/recorder.py.
enum class Work : std::int8_t {
  kKernel,
  kSource,    ///< it brings content from outside
  kHostWait,  ///< it gives the value of its argument to the host
  kCopy,      ///< it brings content to the host
};

/// An op of the step, as a trace has it.
struct StepOp {
  std::int64_t name;
  Work work;
  c10::SmallVector<BufferUse, 8> uses;
};

/// What a call of an op uses and makes: the rules of tidepool_torch/recorder.py and schema.py. The caller has the
/// lock of the storages.
class Call {
 public:
  /// on_gpu: whether memory of the CPU is host memory; otherwise it stands for device memory. empty: the name of the
  /// op that defines the content of an uninitialised buffer.
  Call(const Operator& op, Storages& storages, bool on_gpu, std::int64_t empty)
      : op_{op}, storages_{storages}, on_gpu_{on_gpu}, empty_{empty} {}

  /// Looks at the arguments, before the call. number: of this call; each has another.
  /// @throws std::runtime_error  if a tensor has no single storage
  void begin(std::int64_t number, const Stack& stack) {
    number_ = number;
    const Arguments arguments{op_, stack};
    ignores_statistics_ = arguments.ignores_statistics();
    updates_statistics_ = arguments.updates_statistics();
    allocates_ = arguments.allocates();
    unscales_ = arguments.unscales();
    random_ = arguments.is_random();
    if (op_.lifts) return;  // its argument is its result
    for (const TensorArgument& argument : op_.tensors)
      each_tensor(arguments[argument.position], [&](const at::Tensor& tensor) {
        if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) give(argument, tensor);
      });
    find_uses();
  }

  /// Looks at the results, after the call. Calls see.made(tracked) for each new buffer, see.resized(tracked, bytes)
  /// for each buffer that has other bytes now, and see.run(op) for each op of the step.
  template <class See>
  void end(const Stack& stack, See& see) {
    if (op_.lifts) return bring_in(stack, see);
    if (changes_size(see)) find_uses();
    bool on_cpu = true, on_device = false;
    c10::SmallVector<Tracked*, 4> outputs, fresh;
    for (std::size_t i = stack.size() - op_.returns; i < stack.size(); ++i)
      each_tensor(stack[i], [&](const at::Tensor& tensor) {
        on_cpu &= tensor.device().is_cpu();
        on_device |= is_on_device(tensor);
        if (Tracked* const tracked = track(tensor)) outputs.push_back(tracked);
      });
    if (!given.empty() && hosts_ == given.size() && on_cpu) {
      for (Tracked* each : outputs)
        if (!is_known(*each)) each->kind = Kind::kHost;
      return;
    }
    for (Tracked* each : outputs)
      if (!is_known(*each) && add(*each)) {
        fresh.push_back(each);
        each->undefined = op_.uninitialised;
        see.made(*each);
      }
    if (op_.uninitialised) return;
    StepOp op{op_.name, Work::kKernel, {uses.begin(), uses.end()}};
    for (Tracked* each : fresh) op.uses.push_back({each, Access::kWrite});
    if (brings_)
      op.work = Work::kSource;
    else if (!op.uses.empty() && op_.reads_value)
      op.work = Work::kHostWait;
    else if (!op.uses.empty() && !outputs.empty() && !on_device)
      op.work = Work::kCopy;
    else if (!writes(op))
      return;  // a view, or a query about a tensor
    for (const BufferUse& use : op.uses) {
      if (!use.tracked->undefined || use.access == Access::kWrite) continue;
      use.tracked->undefined = false;
      see.run(StepOp{empty_, Work::kKernel, {{use.tracked, Access::kWrite}}});
    }
    for (const BufferUse& use : op.uses) use.tracked->undefined &= use.access == Access::kRead;
    see.run(op);
    if (updates_statistics_) see.run(statistics(outputs));
  }

  const Operator& op() const { return op_; }
  bool allocates() const { return allocates_; }
  bool is_random() const { return random_; }

  /// Whether content comes from the host, and from nowhere else.
  bool brings_all() const { return op_.lifts || (brings_ && uses.empty()); }
  bool updates_statistics() const { return updates_statistics_; }

  /// Whether the step has no use of the call: it only works on host memory.
  bool on_host() const { return !given.empty() && hosts_ == given.size(); }

  c10::SmallVector<Given, 8> given;
  c10::SmallVector<BufferUse, 8> uses;  ///< of the arguments, each buffer once
  c10::SmallVector<Tracked*, 4> found;  ///< buffers from before, which no op has used so far

 private:
  template <class F>
  static void each_tensor(const c10::IValue& value, F&& f) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) f(value.toTensor());
    } else if (value.isList()) {
      for (const auto& each : value.toListRef()) each_tensor(each, f);
    } else if (value.isTuple()) {
      for (const auto& each : value.toTupleRef().elements()) each_tensor(each, f);
    }
  }

  bool is_on_device(const at::Tensor& tensor) const { return !on_gpu_ || !tensor.device().is_cpu(); }

  /// Null for a tensor of a layout that has no storage, which is an error if it is an argument.
  Tracked* track(const at::Tensor& tensor) {
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    if (!impl->has_storage() || tensor.layout() != c10::kStrided)
      throw std::runtime_error("a tensor of layout " + layout_name(tensor.layout()) +
                               " has no single storage; record strided tensors");
    Tracked& tracked = storages_.track(impl->unsafe_storage().unsafeGetStorageImpl());
    if (tracked.kind == Kind::kUnknown || tracked.kind == Kind::kEmpty) {
      const bool fake = tensor.is_meta() || tracked.storage->device_type() == c10::DeviceType::Meta;
      tracked.bytes = fake ? 0 : static_cast<std::int64_t>(tracked.storage->nbytes());
    }
    return &tracked;
  }

  static std::string layout_name(c10::Layout layout) {
    std::ostringstream text;
    text << layout;
    return "torch." + [](std::string name) {
      for (char& each : name) each = static_cast<char>(std::tolower(each));
      return name == "sparse" ? std::string{"sparse_coo"} : name;
    }(text.str());
  }

  static bool is_known(const Tracked& tracked) {
    return tracked.kind != Kind::kUnknown && !(tracked.kind == Kind::kEmpty && tracked.bytes > 0);
  }

  /// Decides what the buffer of an unknown storage is. Returns whether it is a buffer of the step.
  bool add(Tracked& tracked) {
    tracked.undefined |= tracked.emptied;
    tracked.emptied = false;
    const bool host = on_gpu_ && tracked.storage->device().is_cpu();
    tracked.kind = host ? Kind::kHost : tracked.bytes == 0 ? Kind::kEmpty : Kind::kDevice;
    return tracked.kind == Kind::kDevice;
  }

  void give(const TensorArgument& argument, const at::Tensor& tensor) {
    Tracked& tracked = *track(tensor);
    if (!is_known(tracked)) {
      add(tracked);
      if (tracked.kind == Kind::kDevice) found.push_back(&tracked);
    }
    if (tracked.kind == Kind::kHost) {
      ++hosts_;
      brings_ |= tensor.dim() > 0;
    }
    tracked.used = number_;
    std::int64_t distinct = static_cast<std::int64_t>(tensor.element_size());
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
      if (const auto size = tensor.sizes()[i]; tensor.strides()[i] != 0 || size == 0) distinct *= size;
    c10::raw::intrusive_ptr::incref(tracked.storage);
    auto storage = c10::intrusive_ptr<c10::StorageImpl>::reclaim(tracked.storage);
    const auto bytes = resident_bytes(*tracked.storage);
    given.push_back({std::move(storage), &tracked, Access::kNone, argument.statistic, bytes, distinct, tensor.dim()});
    arguments_.push_back(&argument);
    given.back().access = access(argument, given.back());
  }

  Access access(const TensorArgument& argument, const Given& each) const {
    if (!argument.depends) return argument.access;
    if (argument.statistic && ignores_statistics_) return Access::kNone;
    if (!argument.written) return Access::kRead;
    if (argument.gradients && !unscales_) return Access::kRead;            // only unscaling changes the gradients
    const std::int64_t whole = std::max(each.tracked->bytes, each.bytes);  // its content may be elsewhere now
    const bool covers = std::min(each.distinct, whole) == whole;
    return (argument.out || op_.overwriting) && covers ? Access::kWrite : Access::kReadWrite;
  }

  void find_uses() {
    uses.clear();
    for (const Given& each : given) each.tracked->seen = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      Tracked& tracked = *given[i].tracked;
      if (tracked.kind != Kind::kDevice || given[i].access == Access::kNone) continue;
      if (tracked.seen != number_) {
        tracked.seen = number_;
        tracked.place = static_cast<std::int32_t>(uses.size());
        uses.push_back({&tracked, given[i].access});
      } else if (uses[static_cast<std::size_t>(tracked.place)].access != given[i].access) {
        uses[static_cast<std::size_t>(tracked.place)].access = Access::kReadWrite;
      }
    }
  }

  /// Whether the call has changed the size of an argument's storage. Then its buffer has ended, and another begins.
  template <class See>
  bool changes_size(See& see) {
    bool changed = false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      Given& each = given[i];
      const auto now = static_cast<std::int64_t>(each.storage->nbytes());
      const bool same = each.tracked->kind != Kind::kDevice || now == each.tracked->bytes;
      if ((same && !each.tracked->emptied) || op_.shape_only || each.access == Access::kNone) continue;
      changed = true;
      each.tracked->emptied = false;
      see.resized(*each.tracked, now);
      each.tracked->kind = now == 0 ? Kind::kEmpty : Kind::kDevice;
      each.bytes = now;
      each.distinct = now;
      each.access = access(*arguments_[i], each);
    }
    return changed;
  }

  static bool writes(const StepOp& op) {
    for (const BufferUse& use : op.uses)
      if (use.access != Access::kRead) return true;
    return false;
  }

  /// The second half of a normalisation in training: the running statistics move towards those of the batch.
  StepOp statistics(const c10::SmallVector<Tracked*, 4>& outputs) const {
    StepOp op{op_.statistics, Work::kKernel, {}};
    for (std::size_t i = 1; i < 3 && i < outputs.size(); ++i) op.uses.push_back({outputs[i], Access::kRead});
    for (const Given& each : given)
      if (each.statistic) op.uses.push_back({each.tracked, Access::kReadWrite});
    return op;
  }

  /// A single number stays on the host; anything larger comes to the device.
  template <class See>
  void bring_in(const Stack& stack, See& see) {
    for (std::size_t i = stack.size() - op_.returns; i < stack.size(); ++i)
      each_tensor(stack[i], [&](const at::Tensor& tensor) {
        Tracked* const tracked = track(tensor);
        if (tensor.dim() == 0) {
          if (!is_known(*tracked)) tracked->kind = Kind::kHost;
        } else if (add(*tracked)) {
          see.made(*tracked);
          see.run(StepOp{op_.name, Work::kSource, {{tracked, Access::kWrite}}});
        }
      });
  }

  const Operator& op_;
  Storages& storages_;
  bool on_gpu_;
  std::int64_t number_ = 0, empty_;
  std::size_t hosts_ = 0;
  bool ignores_statistics_ = false, updates_statistics_ = false, allocates_ = false, unscales_ = false, brings_ = false;
  bool random_ = false;
  c10::SmallVector<const TensorArgument*, 8> arguments_;
};

}  // namespace tidepool::native
