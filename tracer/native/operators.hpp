#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidepool::native {

using torch::jit::Stack;

/// How an op uses a tensor, as in traces. kNone: its content does not matter.
enum class Access : std::int8_t { kNone, kRead, kWrite, kReadWrite };

// The tables and rules of tidepool_torch/schema.py.

inline bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline bool asks_for_shape(std::string_view name) {
  return is_any(name, {"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
                       "new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full"});
}

inline bool overwrites(std::string_view name) {
  return is_any(name, {"copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_",
                       "log_normal_", "geometric_", "cauchy_", "_foreach_zero_", "_foreach_copy_"});
}

inline bool makes_no_content(std::string_view name) {
  return is_any(name, {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"});
}

/// An argument that may be a tensor or a list of tensors.
struct TensorArgument {
  std::size_t position;
  Access access;  ///< unless it depends on the call
  bool depends, written, out;
  bool statistic;  ///< running_mean or running_var
  bool gradients;  ///< of a fused optimizer
};

/// Facts of an operator's schema.
struct Operator {
  std::int64_t number = 0;
  std::int64_t name = 0;        ///< number of its name, without the overload
  std::int64_t statistics = 0;  ///< number of the name of the second half of a batch normalisation
  bool records = false;         ///< whether it belongs to a program: ops of PyTorch's own tools do not
  bool views = false;           ///< whether it makes no memory and changes none
  bool lifts = false;           ///< whether it brings a value from Python
  bool shape_only = false, overwriting = false, uninitialised = false, reads_value = false, random = false;
  bool has_statistics = false, backward = false, with_update = false;
  std::vector<TensorArgument> tensors;
  std::size_t arguments = 0, returns = 0;
  int size = -1, generator = -1, device = -1;
  int dropout_p = -1, train = -1, update = -1, training = -1, use_input_stats = -1, grad_scale = -1;
};

/// Facts of all operators that were called, and numbers of names. Not safe for threads.
class Operators {
 public:
  const Operator& look_up(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    if (const auto found = operators_.find(&schema); found != operators_.end()) return found->second;
    Operator made = read(op);
    made.number = static_cast<std::int64_t>(schemas_.size());
    schemas_.push_back(&schema);
    return operators_.emplace(&schema, std::move(made)).first->second;
  }

  const c10::FunctionSchema& schema(std::int64_t number) const { return *schemas_[static_cast<std::size_t>(number)]; }

  std::int64_t name(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<std::int64_t>(names_.size()));
    if (added) names_.push_back(name);
    return found->second;
  }

  const std::string& text(std::int64_t name) const { return names_[static_cast<std::size_t>(name)]; }

 private:
  static bool is_view(const c10::FunctionSchema& schema) {
    const std::string& name = schema.name();
    if (name == "aten::set_" || name == "aten::_unsafe_view") return true;
    bool aliases = !schema.returns().empty();
    for (const auto& each : schema.returns()) aliases &= each.alias_info() && !each.alias_info()->isWrite();
    return aliases;
  }

  Operator read(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    const std::string& full = schema.name();
    const std::string short_name = full.substr(full.rfind("::") == std::string::npos ? 0 : full.rfind("::") + 2);
    Operator made;
    made.name = name(full);
    made.statistics = name(full + ".running_stats");
    made.records = full.rfind("prim::", 0) != 0 && full.rfind("profiler::", 0) != 0;
    made.views = is_view(schema);
    made.lifts = short_name == "lift_fresh";
    bool reshapes = false, seeded = false;
    for (const auto tag : op.getTags()) {
      reshapes |= tag == at::Tag::inplace_view;
      seeded |= tag == at::Tag::nondeterministic_seeded;
    }
    made.views |= reshapes && short_name != "resize_";
    made.views &= !made.lifts;
    made.backward = short_name.find("backward") != std::string::npos;
    made.with_update = short_name.find("with_update") != std::string::npos;
    made.shape_only = asks_for_shape(short_name);
    made.overwriting = overwrites(short_name);
    made.uninitialised = makes_no_content(short_name);
    made.reads_value = short_name == "_local_scalar_dense";
    constexpr std::string_view kBackward = "_backward";
    const bool ends = short_name.size() >= kBackward.size() &&
                      short_name.compare(short_name.size() - kBackward.size(), kBackward.size(), kBackward) == 0;
    made.random = seeded && !ends;
    made.arguments = schema.arguments().size();
    made.returns = schema.returns().size();
    const bool fused = short_name.rfind("_fused_", 0) == 0;
    for (std::size_t i = 0; i < made.arguments; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      remember(made, argument.name(), static_cast<int>(i));
      if (argument.type()->str().find("Tensor") == std::string::npos) continue;
      TensorArgument tensor{i, Access::kRead, false, false, argument.is_out(), false, false};
      tensor.written = argument.alias_info() && argument.alias_info()->isWrite();
      tensor.statistic = argument.name() == "running_mean" || argument.name() == "running_var";
      tensor.gradients = fused && argument.name() == "grads";
      made.has_statistics |= argument.name() == "running_mean";
      if (tensor.statistic)
        tensor.depends = true;
      else if (made.shape_only || reshapes)
        tensor.access = Access::kNone;
      else
        tensor.depends = tensor.written;
      made.tensors.push_back(tensor);
    }
    return made;
  }

  static void remember(Operator& made, const std::string& name, int position) {
    const std::array<std::pair<const char*, int*>, 9> wanted{{{"size", &made.size},
                                                              {"generator", &made.generator},
                                                              {"device", &made.device},
                                                              {"dropout_p", &made.dropout_p},
                                                              {"train", &made.train},
                                                              {"update", &made.update},
                                                              {"training", &made.training},
                                                              {"use_input_stats", &made.use_input_stats},
                                                              {"grad_scale", &made.grad_scale}}};
    for (const auto& [text, place] : wanted)
      if (name == text) *place = position;
  }

  std::unordered_map<const c10::FunctionSchema*, Operator> operators_;
  std::vector<const c10::FunctionSchema*> schemas_;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::vector<std::string> names_;
};

/// The arguments of a call, which are the last values of a stack.
class Arguments {
 public:
  Arguments(const Operator& op, const Stack& stack) : op_{op}, first_{stack.data() + stack.size() - op.arguments} {}

  const c10::IValue& operator[](std::size_t position) const { return first_[position]; }

  /// Whether an argument is True; `otherwise` if the op has none of that name.
  bool is_true(int position, bool otherwise) const {
    if (position < 0) return otherwise;
    const c10::IValue& value = first_[position];
    return value.isBool() && value.toBool();
  }

  /// Whether the call is a normalisation that does not depend on its running statistics.
  bool ignores_statistics() const {
    if (!op_.has_statistics) return false;
    if (op_.backward) return is_true(op_.train, is_true(op_.update, true));
    return op_.with_update || is_true(op_.training, is_true(op_.use_input_stats, false));
  }

  /// Whether it also changes them.
  bool updates_statistics() const { return !op_.backward && ignores_statistics(); }

  bool is_random() const {
    if (!op_.random) return false;
    if (op_.dropout_p >= 0 && first_[op_.dropout_p].isDouble() && first_[op_.dropout_p].toDouble() == 0) return false;
    return op_.train < 0 || !first_[op_.train].isBool() || first_[op_.train].toBool();
  }

  bool unscales() const { return op_.grad_scale >= 0 && !first_[op_.grad_scale].isNone(); }

  /// Whether the call makes a storage: PyTorch also makes tensors of no elements, for a storage that exists.
  bool allocates() const {
    if (!op_.uninitialised) return false;
    if (op_.size < 0 || !first_[op_.size].isList()) return true;
    for (const auto& each : first_[op_.size].toListRef())
      if (each.isInt() && each.toInt() == 0) return false;
    return true;
  }

 private:
  const Operator& op_;
  const c10::IValue* first_;
};

}  // namespace tidepool::native
