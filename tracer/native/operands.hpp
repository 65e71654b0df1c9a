// Facts of operators, and the tensors among the arguments and results of a call.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tidepool::values {

using torch::jit::Stack;

/// Facts of an operator, from its schema and its kernels.
struct Operator {
  std::string name;  ///< as in "aten::topk"
  std::size_t arguments, results;
  std::vector<bool> written;                            ///< for each argument, whether the op may write it
  int device = -1, pin = -1, generator = -1, dim = -1;  ///< places among the arguments
  bool aside;       ///< its values are not looked at: a view, an op that calls others, one on floats alone
  bool forgets;     ///< it is one of these, and writes arguments: what is known of them does not hold any more
  bool mutates;     ///< it writes arguments
  bool overwrites;  ///< what it writes does not depend on what was there
  bool empty;       ///< its result has no content yet
  bool shape_only;  ///< it reads no values of its tensors
  bool can_run;     ///< its host kernel gives what the device's would
  bool sizes;       ///< the sizes of its results depend on values
  bool counts;      ///< the size of its result is the number of true or different elements
  bool adds_up;     ///< it makes integers of booleans, or tells whether all are true
  bool compares;    ///< it compares elements
  bool chooses;     ///< its integers are places along a dimension that it takes by values
  bool reads;       ///< it may give values to the host
  bool foreign;     ///< it is another library's, whose kernels write what no op shows
  bool lifts;       ///< its argument is new, with values of the host's: torch.tensor(..., device="cuda")
  bool exchanges;   ///< it is a collective: the dry device has its results when the host asks for them
  bool follows;     ///< the dry device makes its results, too, of values that it exchanged
  bool coalesces;   ///< it joins elements of a sparse tensor

  explicit Operator(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    name = schema.name();
    const std::size_t colons = name.find("::");
    const std::string space = name.substr(0, colons), word = name.substr(colons + 2);
    const auto is_one_of = [](const std::string& text, std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(), [&](const char* each) { return text == each; });
    };
    const auto begins = [&](std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(), [&](const char* each) { return word.rfind(each, 0) == 0; });
    };
    arguments = schema.arguments().size();
    results = schema.returns().size();
    exchanges = is_one_of(space, {"c10d", "_c10d_functional"});
    bool is_out = false, draws_floats = false;
    for (std::size_t i = 0; i < arguments; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      written.push_back(argument.alias_info() && argument.alias_info()->isWrite());
      if (exchanges) written.back() = argument.name().rfind("input", 0) != 0;  // such schemas do not say
      is_out |= argument.is_out();
      const int place = static_cast<int>(i);
      if (argument.name() == "device") device = place;
      if (argument.name() == "pin_memory") pin = place;
      if (argument.name() == "generator") generator = place;
      if (argument.name() == "dim") dim = place;
    }
    mutates = std::any_of(written.begin(), written.end(), [](bool each) { return each; });
    bool views = results > 0;
    for (const auto& each : schema.returns()) views &= each.alias_info() && !each.alias_info()->isWrite();
    bool seeded = false;
    for (const auto tag : op.getTags()) {
      views |= tag == at::Tag::inplace_view && word != "resize_";
      seeded |= tag == at::Tag::nondeterministic_seeded;
    }
    views |= is_one_of(word, {"_unsafe_view", "set_", "record_stream", "resize_"});
    empty =
        is_one_of(word, {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"});
    // copy_ has one kernel for all devices. Other ops without a kernel of the device call ops that are seen.
    const bool composite = !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
                           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) && word != "copy_";
    // These take and make floats alone. Their calls are not worth a look.
    const bool floats = space == "aten" && begins({"convolution",
                                                   "cudnn_",
                                                   "native_batch",
                                                   "native_layer",
                                                   "native_group",
                                                   "_native_batch",
                                                   "batch_norm",
                                                   "_batch_norm",
                                                   "_fused_rms",
                                                   "addmm",
                                                   "mm",
                                                   "bmm",
                                                   "baddbmm",
                                                   "_addmm",
                                                   "gelu",
                                                   "silu",
                                                   "sigmoid",
                                                   "tanh",
                                                   "_softmax",
                                                   "_log_softmax",
                                                   "threshold_backward",
                                                   "nll_loss",
                                                   "mse_loss",
                                                   "avg_pool",
                                                   "_adaptive_avg",
                                                   "upsample",
                                                   "_scaled_dot_product",
                                                   "_efficient_attention",
                                                   "_flash_attention",
                                                   "embedding_dense"});
    lifts = word == "lift_fresh";
    coalesces = name == "aten::_coalesce";
    const bool lists = begins({"_foreach_", "_fused_", "_amp_"});
    aside = !lifts && !coalesces &&
            (views || composite || floats || lists ||
             is_one_of(space, {"symm_mem", "prim", "profiler", "inductor", "rpc"}));
    forgets = aside && mutates && (floats || lists);
    overwrites = is_out || is_one_of(word, {"copy_", "fill_", "zero_", "random_", "bernoulli_", "normal_", "uniform_"});
    shape_only = is_one_of(word, {"empty_like", "new_empty", "new_empty_strided"});
    reads = is_one_of(word, {"_local_scalar_dense", "copy_"});
    draws_floats = begins({"normal", "uniform_", "exponential_", "log_normal_", "cauchy_", "native_dropout"});
    can_run = word != "_local_scalar_dense" && !empty && !draws_floats && (!seeded || generator >= 0) &&
              (space == "aten" || op.hasKernelForDispatchKey(c10::DispatchKey::CPU));
    counts = begins({"nonzero", "unique", "_unique"});
    sizes = counts || begins({"bincount", "repeat_interleave", "masked_select"});
    adds_up = is_one_of(word, {"sum", "count_nonzero", "cumsum", "copy_", "all"});
    compares = is_one_of(word, {"eq", "ne", "lt", "le", "gt", "ge"});
    chooses = is_one_of(word, {"topk", "sort", "argsort", "argmax", "argmin", "max", "min", "kthvalue", "median",
                               "nanmedian", "mode", "multinomial"});
    foreign = space != "aten";
    follows = is_one_of(word, {"add", "add_", "sum", "max", "min", "amax", "amin", "copy_", "clone", "_to_copy"});
  }
};

/// Whether a tensor's elements are integers or booleans.
inline bool is_whole(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), true); }

/// Whether a tensor has memory of its own on the host or the device, element by element.
inline bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage() &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch() && !tensor.is_conj() && !tensor.is_neg() &&
         !tensor.is_quantized() && (tensor.is_cpu() || tensor.is_cuda());
}

inline bool covers_storage(const at::Tensor& tensor) {
  return tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense() &&
         static_cast<std::size_t>(tensor.numel()) * tensor.itemsize() == tensor.storage().nbytes();
}

/// Calls f(tensor, whether the op writes it) for each tensor among the arguments, which are the last values of `stack`.
template <class F>
void for_each_tensor(const Operator& facts, const Stack& stack, F&& f) {
  const std::size_t first = stack.size() - facts.arguments;
  for (std::size_t i = 0; i < facts.arguments; ++i) {
    const c10::IValue& value = stack[first + i];
    if (value.isTensor()) {
      if (value.toTensor().defined()) f(value.toTensor(), static_cast<bool>(facts.written[i]));
    } else if (value.isList()) {
      for (const c10::IValue& each : value.toListRef()) {
        if (each.isTensorList())
          for (const at::Tensor& inner : each.toTensorVector()) f(inner, static_cast<bool>(facts.written[i]));
        if (!each.isTensor()) continue;
        if (each.toTensor().defined()) f(each.toTensor(), static_cast<bool>(facts.written[i]));
      }
    }
  }
}

/// Calls f(tensor) for each tensor among the results, which are the last values of `stack`.
template <class F>
void for_each_result(const Operator& facts, const Stack& stack, F&& f) {
  for (std::size_t i = stack.size() - facts.results; i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isTensor()) {
      f(value.toTensor());
    } else if (value.isTensorList()) {
      for (const c10::IValue& each : value.toListRef()) f(each.toTensor());
    }
  }
}

/// Replaces each tensor among arguments by f(tensor, whether the op writes it).
template <class F>
void map_tensors(const Operator& facts, Stack& arguments, F&& f) {
  for (std::size_t i = 0; i < facts.arguments; ++i) {
    c10::IValue& value = arguments[i];
    const auto mapped = [&](const at::Tensor& tensor) {
      return tensor.defined() ? f(tensor, static_cast<bool>(facts.written[i])) : tensor;
    };
    if (value.isTensor()) {
      value = mapped(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& each : value.toListRef()) list.push_back(mapped(each.toTensor()));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& each : value.toListRef())
        list.push_back(each.isTensor() ? std::optional<at::Tensor>{mapped(each.toTensor())} : std::nullopt);
      value = std::move(list);
    }
  }
}

/// A host tensor over the same memory: the device's memory is the process's.
inline at::Tensor host_view(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

}  // namespace tidepool::values
