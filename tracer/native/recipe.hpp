#pragma once

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tracer/native/call.hpp"
#include "tracer/native/proceed.hpp"

namespace tidepool::native {

/// No key above the kernels' own: autograd and autocast have done their part, and no mode may see the calls.
class BelowAll {
 public:
  BelowAll()
      : guard_{c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
               c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})} {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// A call of an op without its tensors, for running it again.
class Recipe {
 public:
  /// Before the call. uses of `call`: those of the step.
  Recipe(const c10::OperatorHandle& op, c10::DispatchKeySet keys, const Call& call, const Stack& stack)
      : op_{op}, keys_{keys}, records_{at::GradMode::is_enabled()} {
    const Operator& facts = call.op();
    BelowAll below;
    const auto first = stack.size() - facts.arguments;
    for (std::size_t i = first; i < stack.size(); ++i) arguments_.push_back(keep(stack[i], call));
    given = call.uses.size();
    const Arguments arguments{facts, stack};
    if (!arguments.is_random()) return;
    if (facts.generator >= 0 && arguments[facts.generator].isGenerator())
      generator_ = arguments[facts.generator].toGenerator();
    else
      generator_ = at::globalContext().defaultGenerator(device_);
    state_ = state_of(*generator_);
  }

  /// Runs the op with these storages for the uses of its arguments. Returns the storages that it makes.
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> run(const std::vector<c10::StorageImpl*>& places) {
    BelowAll below;
    const at::AutoGradMode mode{records_};
    Stack stack;
    std::size_t next = 0;
    for (const auto& each : arguments_) stack.push_back(fill(each, places, next));
    const bool draws = state_.defined();
    const at::Tensor before = draws ? state_of(*generator_) : at::Tensor{};
    if (draws) set_state(*generator_, state_);
    try {
      proceed(op_, keys_, &stack);
    } catch (...) {
      if (draws) set_state(*generator_, before);
      throw;
    }
    if (draws) set_state(*generator_, before);
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> made;
    for (const auto& result : stack) collect(result, places, made);
    return made;
  }

  std::size_t given = 0;  ///< how many uses of the op are those of arguments

 private:
  /// A tensor argument: the use whose content it has, or a tensor that the trace does not name.
  struct Tensor {
    std::int32_t use = -1;
    at::Tensor value;  // a scalar, which is kept; undefined if only the shape matters
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
    at::TensorOptions options;
    bool defined = false;
  };

  c10::IValue keep(const c10::IValue& value, const Call& call) {
    if (value.isTensor()) {
      keep_tensor(value.toTensor(), call);
      return c10::IValue{at::Tensor{}};
    }
    if (!value.isList()) return value;
    const auto list = value.toListRef();
    bool tensors = false;
    for (const auto& each : list) tensors |= each.isTensor();
    if (!tensors) return value;
    c10::impl::GenericList kept{value.toList().elementType()};
    for (const auto& each : list) kept.push_back(keep(each, call));
    return c10::IValue{kept};
  }

  void keep_tensor(const at::Tensor& tensor, const Call& call) {
    if (!tensor.defined()) return tensors_.emplace_back(), void();
    Tensor kept{-1, {}, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(), tensor.options(), true};
    const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();  // an error for a sparse one
    for (std::size_t i = 0; i < call.uses.size() && kept.use < 0; ++i)
      if (call.uses[i].tracked->storage == storage) kept.use = static_cast<std::int32_t>(i);
    const bool number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (number || (kept.use < 0 && tensor.dim() == 0 && resident_bytes(*storage) > 0)) {
      kept.use = -1;
      kept.value = tensor.clone();
      kept.value.unsafeGetTensorImpl()->set_wrapped_number(number);
    }
    if (!number) device_ = tensor.device();
    tensors_.push_back(std::move(kept));
  }

  c10::IValue fill(const c10::IValue& value, const std::vector<c10::StorageImpl*>& places, std::size_t& next) const {
    if (value.isTensor()) return c10::IValue{tensor(tensors_[next++], places)};
    if (!value.isList()) return value;
    const auto list = value.toListRef();
    bool any = false;
    for (const auto& each : list) any |= each.isTensor();
    if (!any) return value;
    c10::impl::GenericList filled{value.toList().elementType()};
    for (const auto& each : list) filled.push_back(fill(each, places, next));
    return c10::IValue{filled};
  }

  static at::Tensor tensor(const Tensor& kept, const std::vector<c10::StorageImpl*>& places) {
    if (!kept.defined || kept.value.defined()) return kept.value;
    if (kept.use < 0) return at::empty_strided(kept.sizes, kept.strides, kept.options);
    c10::StorageImpl* const place = places.at(static_cast<std::size_t>(kept.use));
    c10::raw::intrusive_ptr::incref(place);
    const c10::Storage storage{c10::intrusive_ptr<c10::StorageImpl>::reclaim(place)};
    at::Tensor made = at::empty({0}, kept.options);
    return made.set_(storage, kept.offset, kept.sizes, kept.strides);
  }

  static void collect(const c10::IValue& value, const std::vector<c10::StorageImpl*>& places,
                      std::vector<c10::intrusive_ptr<c10::StorageImpl>>& made) {
    if (value.isList())
      for (const auto& each : value.toListRef()) collect(each, places, made);
    if (!value.isTensor() || !value.toTensor().defined()) return;
    c10::StorageImpl* const storage = value.toTensor().storage().unsafeGetStorageImpl();
    if (storage->nbytes() == 0 || std::find(places.begin(), places.end(), storage) != places.end()) return;
    for (const auto& each : made)
      if (each.get() == storage) return;
    c10::raw::intrusive_ptr::incref(storage);
    made.push_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim(storage));
  }

  static at::Tensor state_of(at::Generator& generator) {
    const std::lock_guard<std::mutex> lock{generator.mutex()};
    return generator.get_state();
  }

  static void set_state(at::Generator& generator, const at::Tensor& state) {
    const std::lock_guard<std::mutex> lock{generator.mutex()};
    generator.set_state(state);
  }

  c10::OperatorHandle op_;
  c10::DispatchKeySet keys_;
  bool records_;  // if not, layers of oneDNN's LSTM make no workspace for backward
  std::vector<c10::IValue> arguments_;
  std::vector<Tensor> tensors_;
  c10::Device device_{c10::DeviceType::CPU};
  std::optional<at::Generator> generator_;
  at::Tensor state_;
};

/// Bytes of the storages that a call will make. PyTorch computes the shapes; where it cannot, the bytes of the
/// arguments stand for them.
inline std::int64_t made_bytes(const c10::OperatorHandle& op, const Operator& facts, const Stack& given) {
  if (facts.views) return 0;
  std::vector<at::Tensor> metas;
  std::vector<c10::StorageImpl*> storages;
  std::int64_t stands = 0;
  const auto meta = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
    c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();  // an error for a sparse one
    if (std::find(storages.begin(), storages.end(), storage) == storages.end()) {
      storages.push_back(storage);
      stands += static_cast<std::int64_t>(storage->nbytes());
    }
    metas.push_back(
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::DeviceType::Meta)));
    return metas.back();
  };
  BelowAll below;
  const at::NoGradGuard no_grad;
  try {
    Stack stack;
    for (std::size_t i = given.size() - facts.arguments; i < given.size(); ++i) {
      const c10::IValue& value = given[i];
      if (value.isTensor()) {
        stack.emplace_back(meta(value.toTensor()));
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& each : value.toTensorVector()) list.push_back(meta(each));
        stack.emplace_back(std::move(list));
      } else if (value.isDevice()) {
        stack.emplace_back(c10::Device{c10::DeviceType::Meta});
      } else if (value.isGenerator()) {
        stack.emplace_back();
      } else {
        stack.push_back(value);
      }
    }
    if (op.schema().name().rfind("aten::", 0) != 0) return stands;
    if (metas.empty() && facts.device >= 0)
      stack[static_cast<std::size_t>(facts.device)] = c10::Device{c10::DeviceType::Meta};
    op.callBoxed(&stack);
    std::vector<c10::StorageImpl*> made;
    std::int64_t bytes = 0;
    const auto add = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();  // an error for a sparse one
      for (const at::Tensor& each : metas)
        if (each.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == storage) return;
      if (std::find(made.begin(), made.end(), storage) != made.end()) return;
      made.push_back(storage);
      bytes += static_cast<std::int64_t>(storage->nbytes());
    };
    for (const auto& value : stack) {
      if (value.isTensor()) add(value.toTensor());
      if (value.isTensorList())
        for (const at::Tensor& each : value.toTensorVector()) add(each);
    }
    return bytes;
  } catch (const std::exception&) {  // the op has no rule for shapes, or its shapes depend on content
    return stands;
  }
}

}  // namespace tidepool::native
