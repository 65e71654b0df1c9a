// Values of tensors in a dry run: README.md. The interface is C, for ctypes.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ScopeExit.h>
#include <pthread.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracer/native/assumed.hpp"
#include "tracer/native/operands.hpp"

namespace tidepool::values {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKey kKey = DispatchKey::Fake;

// Most elements whose values are computed: of all operands of an op, of those that are floats, and of floats that come
// from the host (they may be weights, whose values decide nothing).
constexpr std::int64_t kMostElements = 1 << 26, kMostFloats = 1 << 20, kMostHostFloats = 1 << 12;

/// What is known of storages, by their addresses. Each op that makes or writes one says whether it is.
struct Knowledge {
  std::mutex mutex;
  std::unordered_set<const void*> unknown;          ///< of integers and booleans: all others are known
  std::unordered_set<const void*> exchanged;        ///< unknown ones that the dry device has when the host asks
  std::unordered_set<const void*> floats;           ///< that are known
  std::unordered_map<const void*, Origin> assumed;  ///< known because their values were assumed
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<const Operator>> operators;
  std::unique_ptr<torch::Library> library, passed;
  at::Generator generator;
  Routing routing = Routing::kBalanced;
  std::vector<double> shares;  ///< of places, for Routing::kGiven
  void (*decided)(const char* op) = nullptr;
};

/// Never destroyed: ops run until the process ends.
Knowledge& knowledge() {
  static auto* const made = new Knowledge;
  return *made;
}

/// A function that sees ops before this file does, and calls compute() for each: the core.
using Seen = void (*)(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack);

std::atomic<Seen> first{nullptr};
std::atomic<bool> off{false};
thread_local bool computing = false;  // ops of this file run
thread_local int in_foreign = 0;      // calls of other libraries' ops that were not run on the host

const Operator& look_up(const c10::OperatorHandle& op) {
  const std::lock_guard lock{knowledge().mutex};
  auto& known = knowledge().operators[&op.schema()];
  if (!known) known = std::make_unique<const Operator>(op);
  return *known;
}

const void* address(const at::Tensor& tensor) { return tensor.storage().data(); }

struct Known {
  bool is_known;
  Origin origin;
  bool is_exchanged = false;
};

Known knowledge_of(const at::Tensor& tensor) {
  Knowledge& of = knowledge();
  const void* const at = address(tensor);
  const std::lock_guard lock{of.mutex};
  const bool is_known = is_whole(tensor) ? of.unknown.count(at) == 0 : of.floats.count(at) > 0;
  if (!is_known) return {false, Origin::kReal, of.exchanged.count(at) > 0};
  if (of.assumed.empty()) return {true, Origin::kReal};
  const auto found = of.assumed.find(at);
  return {true, found == of.assumed.end() ? Origin::kReal : found->second};
}

/// Notes what an op has made or written.
void note(const at::Tensor& tensor, bool is_known, Origin origin = Origin::kReal, bool is_exchanged = false) {
  if (!is_plain(tensor) || !tensor.is_cuda()) return;
  Knowledge& of = knowledge();
  const void* const at = address(tensor);
  const std::lock_guard lock{of.mutex};
  of.assumed.erase(at);
  of.floats.erase(at);
  of.unknown.erase(at);
  of.exchanged.erase(at);
  if (!is_known) {
    if (!is_whole(tensor)) return;
    of.unknown.insert(at);
    if (is_exchanged) of.exchanged.insert(at);
    return;
  }
  if (!is_whole(tensor)) of.floats.insert(at);
  if (origin != Origin::kReal) of.assumed[at] = origin;
}

/// What is known of the operands of a call.
struct Operands {
  bool on_device = false;
  bool known = true;          ///< all values
  bool whole = true;          ///< those on the device are integers and booleans
  bool booleans_only = true;  ///< the unknown ones are booleans
  bool exchanged = false;     ///< the unknown ones are those that the dry device has when the host asks
  bool host_floats = false;   ///< a tensor of floats is on the host
  std::int64_t elements = 0, floats = 0;
  Origin origin = Origin::kReal;
};

Operands look_at(const Operator& facts, const Stack& stack) {
  Operands found;
  for_each_tensor(facts, stack, [&](const at::Tensor& tensor, bool is_written) {
    if (!is_plain(tensor)) {
      found.known = found.whole = false;
      return;
    }
    const bool whole = is_whole(tensor);
    if (tensor.is_cpu()) {
      found.host_floats |= !whole && tensor.dim() > 0;
      return;
    }
    found.on_device = true;
    if (facts.shape_only) return;
    found.elements += tensor.numel();
    if (!whole) found.floats += tensor.numel();
    if (is_written && facts.overwrites && covers_storage(tensor)) return;
    found.whole &= whole;
    const Known about = knowledge_of(tensor);
    found.origin = std::max(found.origin, about.origin);
    if (about.is_known) return;
    found.exchanged = about.is_exchanged && (found.known || found.exchanged);
    found.known = false;
    found.booleans_only &= tensor.scalar_type() == at::kBool;
  });
  if (facts.device >= 0) {
    const c10::IValue& device = stack[stack.size() - facts.arguments + static_cast<std::size_t>(facts.device)];
    found.on_device |= device.isDevice() && device.toDevice().is_cuda();
  }
  return found;
}

struct HostRun {
  Stack results;
  std::vector<at::Tensor> written;  ///< for each argument that the op writes
};

/// Runs the host kernel of an op on the values of its arguments, which stay as they are. Unknown ones are replaced, or
/// count as they are in memory. None if it fails: then the op itself says what is wrong, or it has no such kernel.
std::optional<HostRun> run_on_host(const c10::OperatorHandle& op, const Operator& facts, const Stack& stack,
                                   bool replaces) {
  HostRun run;
  run.results.assign(stack.end() - static_cast<std::ptrdiff_t>(facts.arguments), stack.end());
  const auto host_of = [&](const at::Tensor& tensor) {
    if (!tensor.is_cuda()) return tensor;
    if (replaces && !knowledge_of(tensor).is_known) return all_different(tensor);
    return host_view(tensor);
  };
  try {
    map_tensors(facts, run.results, [&](const at::Tensor& tensor, bool is_written) {
      if (!is_written) return host_of(tensor);
      run.written.push_back((tensor.is_cuda() ? host_view(tensor) : tensor).clone());
      return run.written.back();
    });
    const auto set = [&](int place, c10::IValue value) {
      if (place >= 0) run.results[static_cast<std::size_t>(place)] = std::move(value);
    };
    set(facts.device, c10::Device{c10::kCPU});
    set(facts.pin, {});
    set(facts.generator, knowledge().generator);
    op.redispatchBoxed(DispatchKeySet{DispatchKey::CPU}, &run.results);
  } catch (const std::exception&) {
    return {};
  }
  return run;
}

/// Gives a tensor of the device the size and the values of the host's.
void take_over(const Operator& facts, const at::Tensor& device, const at::Tensor& host) {
  if (device.sizes() != host.sizes()) {
    if (facts.name == "aten::nonzero") {  // its kernel writes the result transposed
      device.resize_({host.size(1), host.size(0)});
      device.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), {1, std::max<std::int64_t>(host.size(0), 1)});
    } else {
      device.resize_(host.sizes());
    }
  }
  if (device.numel() > 0) host_view(device).copy_(host);
}

void decide(const Operator& facts) {
  if (knowledge().decided) knowledge().decided(facts.name.c_str());
}

/// Ops on the host that are not the job's: they are not seen, and no mode or autocast changes them.
class Aside {
 public:
  Aside() { computing = true; }
  ~Aside() { computing = false; }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  c10::impl::ExcludeDispatchKeyGuard keys_{DispatchKeySet{kKey} | DispatchKeySet{DispatchKey::Python} |
                                           DispatchKeySet{DispatchKey::PythonTLSSnapshot} |
                                           c10::autocast_dispatch_keyset};
  at::AutoDispatchBelowADInplaceOrView below_;
};

/// Whether what an op gives is known from then on. A kernel of another library writes to what was made for it.
bool stays(const Operator& facts) { return in_foreign == 0 || !(facts.empty || facts.overwrites); }

/// Notes the results of an op on unknown operands.
void note_unknown(const Operator& facts, const std::vector<at::Tensor>& written, const Stack& arguments,
                  bool is_exchanged, Stack& stack) {
  for (const at::Tensor& tensor : written) note(tensor, false, Origin::kReal, is_exchanged);
  for_each_result(facts, stack, [&](const at::Tensor& tensor) {
    if (facts.chooses && !facts.mutates && is_plain(tensor) && tensor.is_cuda() && tensor.scalar_type() == at::kLong &&
        arguments[0].isTensor() && !is_whole(arguments[0].toTensor())) {
      if (tensor.numel() > 0)
        host_view(tensor).copy_(assumed_choice(facts, arguments, tensor, knowledge().routing, knowledge().shares));
      note(tensor, true, Origin::kAssumed);
    } else {
      note(tensor, false, Origin::kReal, is_exchanged);
    }
  });
}

/// Writes the values of an op's results, and notes whether they are known.
void note_values(const Operator& facts, const std::vector<at::Tensor>& written, const HostRun& run, bool is_known,
                 Origin origin, Stack& stack) {
  const auto take = [&](const at::Tensor& device, const at::Tensor& host) {
    if (!is_plain(device) || !device.is_cuda() || !host.defined()) return;
    take_over(facts, device, host);
    const bool booleans = device.scalar_type() == at::kBool;
    note(device, is_known && stays(facts) && (is_whole(device) || device.numel() <= kMostFloats),
         booleans ? std::min(origin, Origin::kCompared) : origin);
  };
  for (std::size_t i = 0; i < written.size(); ++i) take(written[i], run.written[i]);
  if (facts.mutates) return;
  std::vector<at::Tensor> made;
  for_each_result(facts, run.results, [&](const at::Tensor& tensor) { made.push_back(tensor); });
  std::size_t next = 0;
  for_each_result(facts, stack, [&](const at::Tensor& tensor) {
    if (next < made.size()) take(tensor, made[next++]);
  });
  for (std::size_t i = 0; i < facts.results; ++i)  // numbers, as of equal()
    if (const c10::IValue& value = run.results[run.results.size() - facts.results + i]; value.isScalar())
      stack[stack.size() - facts.results + i] = value;
}

/// The host's tensors do not tell the sizes that an op would read: a float may be a weight.
bool is_small(const Operands& operands, const Operator& facts, const Stack& stack) {
  if (operands.elements > kMostElements || operands.floats > kMostFloats) return false;
  if (!operands.host_floats) return true;
  std::int64_t most = 0;
  for_each_tensor(facts, stack, [&](const at::Tensor& tensor, bool) { most = std::max(most, tensor.numel()); });
  return most <= kMostHostFloats;
}

void see_on_device(const c10::OperatorHandle& op, const Operator& facts, const Operands& operands, DispatchKeySet below,
                   Stack* stack) {
  const bool counts = facts.counts && !operands.known;
  std::vector<at::Tensor> written;
  Stack arguments;
  std::optional<HostRun> run;
  bool adds_up = false, weighs = false;
  const bool interesting =
      operands.known || facts.counts || facts.adds_up || facts.mutates || facts.chooses || facts.compares;
  if (interesting) {
    const Aside aside;
    for_each_tensor(facts, *stack, [&](const at::Tensor& tensor, bool is_written) {
      if (is_written) written.push_back(tensor);
    });
    adds_up = facts.adds_up && !operands.known && !operands.exchanged && operands.whole && operands.booleans_only &&
              (written.empty() || (is_whole(written[0]) && written[0].scalar_type() != at::kBool));
    // A number of unknown value is in memory what the host would get, and comparisons of it fit that.
    weighs = facts.compares && !operands.known && !operands.exchanged && operands.whole && operands.elements <= 2 &&
             stack->back().isScalar() == (operands.elements == 1);
    if (facts.name == "aten::zero_" && operands.known) {
      // The dry device fills memory itself, without making pages of zeros.
      op.redispatchBoxed(below, stack);
      if (!written.empty() && is_plain(written[0]) && written[0].is_cuda()) {
        if (!written[0].is_non_overlapping_and_dense() && written[0].numel() > 0) host_view(written[0]).zero_();
        note(written[0], stays(facts) && (is_whole(written[0]) || written[0].numel() <= kMostFloats));
      }
      return;
    }
    if (facts.can_run && (operands.known || counts || adds_up || weighs) && is_small(operands, facts, *stack))
      run = run_on_host(op, facts, *stack, !weighs);
    if (!run && facts.chooses)
      arguments.assign(stack->end() - static_cast<std::ptrdiff_t>(facts.arguments), stack->end());
    const bool assumed = counts || operands.origin != Origin::kReal;
    if ((facts.sizes && assumed) || weighs) decide(facts);
    if (facts.reads && !facts.mutates && operands.whole && operands.origin == Origin::kAssumed) decide(facts);
  } else if (facts.reads && operands.whole && !operands.booleans_only && !operands.exchanged) {
    decide(facts);
  }
  {
    const bool foreign = facts.foreign && !run;
    in_foreign += foreign;
    const auto end = c10::make_scope_exit([&] { in_foreign -= foreign; });
    op.redispatchBoxed(below, stack);
  }
  const Aside aside;
  if (facts.empty)
    for_each_result(facts, *stack, [&](const at::Tensor& each) {
      if (is_plain(each)) note(each, is_whole(each) && stays(facts));
    });
  else if (run)
    note_values(facts, written, *run, !weighs,
                counts    ? Origin::kAssumed
                : adds_up ? Origin::kCompared
                          : operands.origin,
                *stack);
  else
    note_unknown(facts, written, arguments, operands.exchanged && facts.follows, *stack);
}

/// A collective: nothing is computed here.
void exchange(const c10::OperatorHandle& op, const Operator& facts, DispatchKeySet below, Stack* stack) {
  std::vector<at::Tensor> written;
  {
    const Aside aside;
    for_each_tensor(facts, *stack, [&](const at::Tensor& tensor, bool is_written) {
      if (is_written) written.push_back(tensor);
    });
  }
  op.redispatchBoxed(below, stack);
  const Aside aside;
  note_unknown(facts, written, {}, true, *stack);
}

/// An op that is not looked at. Integers that it writes, as a gradient scaler's count of steps, decide no sizes.
void pass(const c10::OperatorHandle& op, const Operator& facts, DispatchKeySet below, Stack* stack) {
  if (facts.forgets) {
    const Aside aside;
    for_each_tensor(facts, *stack, [](const at::Tensor& tensor, bool is_written) {
      if (is_written && !is_whole(tensor)) note(tensor, false);
    });
  }
  op.redispatchBoxed(below, stack);
}

/// Joins elements of a sparse tensor, whose kernels count them: as many stay as there are different indices, or all if
/// the indices are not known. The op itself runs first, for its temporary memory.
void coalesce(const c10::OperatorHandle& op, const Operator& facts, DispatchKeySet below, Stack* stack) {
  const at::Tensor sparse = stack->back().toTensor();
  op.redispatchBoxed(below, stack);
  if (!sparse.is_cuda() || sparse.layout() != at::kSparse || sparse._nnz() < 2) return;
  const Aside aside;
  const at::Tensor given = sparse._indices();
  const Known about = knowledge_of(given);
  const auto places = sparse.sizes().slice(0, static_cast<std::size_t>(sparse.sparse_dim()));
  std::int64_t most = 1;  // elements with different indices
  for (const std::int64_t size : places) most = std::min(sparse._nnz(), most * std::min(size, sparse._nnz()));
  const bool is_known = about.is_known && given.numel() <= kMostElements;
  at::Tensor host;
  if (is_known) {
    const at::Tensor ones = at::ones({sparse._nnz()}, at::kBool);
    host = at::_sparse_coo_tensor_unsafe(host_view(given).clone(), ones, places).coalesce()._indices();
    most = host.size(1);
  }
  if (!is_known || about.origin != Origin::kReal) decide(facts);
  const at::Tensor indices = at::empty({given.size(0), most}, given.options());
  if (is_known) host_view(indices).copy_(host);
  note(indices, is_known, about.origin);
  std::vector<std::int64_t> shape = sparse._values().sizes().vec();
  shape[0] = most;
  const at::Tensor values = at::empty(shape, sparse._values().options());
  stack->back() = at::_sparse_coo_tensor_unsafe(indices, values, sparse.sizes())._coalesced_(true);
}

/// below: the keys below ours.
void compute(const c10::OperatorHandle& op, DispatchKeySet below, Stack* stack) {
  if (computing || off) return op.redispatchBoxed(below, stack);
  const Operator& facts = look_up(op);
  if (facts.aside) return pass(op, facts, below, stack);
  if (facts.exchanges) return exchange(op, facts, below, stack);
  if (facts.lifts) {
    op.redispatchBoxed(below, stack);
    const Aside aside;
    return for_each_result(facts, *stack, [](const at::Tensor& each) {
      if (is_plain(each)) note(each, is_whole(each) || each.numel() <= kMostFloats);
    });
  }
  if (facts.coalesces) return coalesce(op, facts, below, stack);
  const Operands operands = look_at(facts, *stack);
  if (!operands.on_device) return op.redispatchBoxed(below, stack);
  see_on_device(op, facts, operands, below, stack);
}

void see(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  if (const Seen other = first) return other(op, keys, stack);
  compute(op, keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kKey), stack);
}

/// Leaves out the ops that are not looked at, so that their calls take no longer than without this file.
std::unique_ptr<torch::Library> pass_aside() {
  auto passed = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || name.name.rfind("aten::", 0) != 0 || op->hasKernelForDispatchKey(kKey)) continue;
    if (const Operator facts{*op}; !facts.aside || facts.forgets) continue;
    const std::string full = name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    passed->impl(full.c_str(), torch::CppFunction::makeFallthrough());
  }
  return passed;
}

void include(bool included) { c10::impl::tls_set_dispatch_key_included(kKey, included); }

/// A process that the job forks, as a worker of a DataLoader, has no device. Its lock may be held by a thread that it
/// does not have.
void leave_child() {
  off = true;
  include(false);
}

}  // namespace
}  // namespace tidepool::values

extern "C" {

/// Computes values from now on, on this thread and in its backward passes. decided(op) is called when a size follows
/// from assumed values. Returns whether it does: PyTorch may use the key itself.
/// @param shares  of places, for Routing::kGiven
int tidepool_values_begin(int routing, const double* shares, int places, void (*decided)(const char* op)) {
  using namespace tidepool::values;
  Knowledge& of = knowledge();
  of.routing = static_cast<Routing>(routing);
  of.shares.assign(shares, shares + places);
  of.decided = decided;
  try {
    of.generator = at::detail::createCPUGenerator(0);
    auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&see>());
    of.library = std::move(library);
    of.passed = pass_aside();
  } catch (const std::exception&) {
    return 0;
  }
  pthread_atfork(nullptr, nullptr, &leave_child);
  include(true);
  return 1;
}

/// A new tensor has memory here. Ops on floats alone do not say what they make, so nothing is known of floats until
/// another op says it.
void tidepool_values_allocated(const void* address) {
  tidepool::values::Knowledge& of = tidepool::values::knowledge();
  const std::lock_guard lock{of.mutex};
  of.floats.erase(address);
  of.assumed.erase(address);
}

/// From now on, this function sees all ops first. Returns the one that it calls for each: compute().
void* tidepool_values_behind(void* other) {
  using namespace tidepool::values;
  knowledge().passed.reset();  // it sees those, too
  first = reinterpret_cast<Seen>(other);
  return reinterpret_cast<void*>(&compute);
}
}
