// Sees each operator of a PyTorch job below autograd, without Python: README.md. The interface is C, for ctypes.

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/ScopeExit.h>
#if TIDEPOOL_TORCH_MINOR >= 10
#include <c10/core/impl/PyInterpreterHooks.h>
#endif
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tracer/native/follower.hpp"
#include "tracer/native/log.hpp"
#include "tracer/native/operators.hpp"
#include "tracer/native/proceed.hpp"
#include "tracer/native/storages.hpp"
#include "tracer/native/user_line.hpp"

std::int64_t tidepool_cells[16] = {};

namespace tidepool::native {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

constexpr DispatchKey kKey = DispatchKey::Fake;

/// ns on the clock of raw files.
std::int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

std::int64_t thread_number() {
  thread_local const std::int64_t number = ::syscall(SYS_gettid);
  return number;
}

void report_end(void* context);

struct Core {
  std::mutex mutex;  // never held while the interpreter's lock is taken
  Storages storages{&report_end};
  Log log{storages};
  std::vector<std::int64_t> taken;
  Operators operators;
  Follower follower{mutex, storages, operators};
  std::int64_t calls = 0;
  std::string error;  // what ended the recording
  bool forked = false;
  bool on_gpu = false;  // memory of the CPU is host memory
  bool values = false;  // of arguments and results are in the log
  std::int64_t empty = 0;
  UserLine lines;
  std::unique_ptr<torch::Library> library;
};

std::atomic<bool> recording{false}, following{false};
std::atomic<bool> included{false};    // of ops that come from the library of values, which has the key
thread_local bool is_inside = false;  // an op of those is under way, or code of Tidepool runs

/// Never destroyed: storages of the job outlive all statics.
Core& core() {
  static auto* const the_core = new Core;
  return *the_core;
}

/// Declared before a lock, so that it is dropped after it.
using Dead = std::vector<Storages::Weak>;

void note(Event event, const Tracked& tracked) {
  core().log.begin(event);
  core().log.add(tracked.number, now(), thread_number());
  core().log.end();
}

void note_free(const Tracked& tracked) { note(kFree, tracked); }

/// The job has changed the size of a storage, as FSDP does: the memory that it had is not the one that it gets.
void note_emptied(Tracked& tracked) {
  if (!recording || tracked.kind != Kind::kDevice) return;
  tracked.kind = Kind::kEmpty;
  tracked.emptied = true;
  note(kEmptied, tracked);
}

void report_end(void* context) {
  auto* memory = static_cast<Storages::Memory*>(context);
  if (recording || following) {
    Dead dead;
    const std::lock_guard lock{core().mutex};
    core().storages.ended(
        memory->storage,
        [](Tracked& tracked) {
          if (recording) note_free(tracked);
          if (following) core().follower.ended(tracked);
        },
        &note_emptied);
    dead = core().storages.take_dead();
  }
  delete memory;
}

/// Torch 2.4 to 2.14 have our key above Python, 2.15 has it below. There, an op on a wrapper subclass (DTensor, ...)
/// reaches us before its __torch_dispatch__. Does what PyTorch does at that key, but leaves our key on, so that the ops
/// on the inner tensors reach us.
bool dispatch_subclass(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  if constexpr (kKey > DispatchKey::Python) {
    if (!keys.has(DispatchKey::Python) || c10::impl::TorchDispatchModeTLS::stack_len() > 0) return false;
    const c10::TensorImpl* found = nullptr;
    const auto look = [&](const at::Tensor& tensor) {
      if (!found && tensor.defined() && tensor.unsafeGetTensorImpl()->is_python_dispatch())
        found = tensor.unsafeGetTensorImpl();
    };
    for (std::size_t i = stack->size() - op.schema().arguments().size(); i < stack->size() && !found; ++i) {
      const auto& value = (*stack)[i];
      if (value.isTensor()) look(value.toTensor());
      if (value.isList())
        for (const auto& each : value.toListRef())
          if (each.isTensor()) look(each.toTensor());
    }
    if (!found) return false;
    const DispatchKeySet from_python =
        DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Python) | DispatchKeySet(DispatchKey::Python);
    const c10::impl::ExcludeDispatchKeyGuard guard((DispatchKeySet(DispatchKeySet::FULL) - from_python).remove(kKey));
#if TIDEPOOL_TORCH_MINOR >= 10
    c10::impl::getGlobalPyInterpreter()->vtable_->dispatch(op, stack);
#else
    const_cast<c10::TensorImpl*>(found)->pyobj_slot()->load_pyobj_interpreter()->dispatch(op, stack);
#endif
    return true;
  }
  return false;
}

/// The place of an op in the program, as Python finds it later.
struct Place {
  bool in_backward;
  std::int64_t newest, line;

  Place()
      : in_backward{torch::autograd::get_current_graph_task_id() != -1},
        newest{static_cast<std::int64_t>(at::sequence_number::peek()) - 1},
        line{in_backward && tidepool_cells[kRunning] == 0 ? 0 : core().lines.now()} {}
};

thread_local std::int64_t newest_seen = -1;

/// A view only matters if autograd records it: its node has a module and a line.
void note_view() {
  if (static_cast<std::int64_t>(at::sequence_number::peek()) - 1 == newest_seen) return;
  const Place place;
  newest_seen = place.newest;
  const std::lock_guard lock{core().mutex};
  Log& log = core().log;
  log.begin(kNode);
  log.add(thread_number(), place.in_backward, place.newest, place.line);
  log.end();
}

/// What a call of an op adds to the log.
class Recorded {
 public:
  explicit Recorded(const Operator& op) : call_{op, core().storages, core().on_gpu, core().empty} {
    newest_seen = place_.newest;
    if (!place_.in_backward) return;
    if (const auto current = torch::autograd::get_current_node()) {
      node_ = static_cast<std::int64_t>(current->sequence_nr());
      if (const auto* adds = dynamic_cast<const torch::autograd::AccumulateGrad*>(current.get()))
        variable_ = reinterpret_cast<std::int64_t>(adds->variable.unsafeGetTensorImpl());
    }
  }

  void begin(const Stack& stack) {
    Dead dead;
    const std::lock_guard lock{core().mutex};
    core().storages.look_around(&note_free);
    dead = core().storages.take_dead();
    call_.begin(++core().calls, stack);
    if (core().values) arguments_ = core().log.described(stack, call_.op().arguments);
  }

  void end(const Stack& stack, std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock{core().mutex};
    call_.end(stack, *this);
    if (call_.on_host() && ops_.empty() && made_.empty()) return;
    Log& log = core().log;
    log.begin(kCall);
    log.add(call_.op().number, thread_number(), place_.in_backward, place_.newest, node_, variable_, place_.line, begin,
            end,
            (call_.is_random() ? kRandom : 0) | (call_.brings_all() ? kBringsAll : 0) |
                (call_.op().uninitialised ? kUninitialised : 0) | (core().values ? kValues : 0));
    add(log, call_.found);
    add(log, resized_);
    add(log, made_);
    log.add(ops_.size());
    for (const StepOp& op : ops_) {
      log.add(op.name, op.work, op.uses.size());
      for (const BufferUse& use : op.uses) log.add(use.tracked->number, use.access);
    }
    if (core().values) {
      log.add(arguments_.size());
      log.add(arguments_);
      const auto results = log.described(stack, call_.op().returns);
      log.add(results);
    }
    log.end();
  }

  // What Call::end() finds.
  void made(Tracked& tracked) { made_.push_back(&tracked); }
  void resized(Tracked& tracked, std::int64_t bytes) {
    tracked.bytes = bytes;
    tracked.undefined = bytes > 0;
    resized_.push_back(&tracked);
  }
  void run(const StepOp& op) { ops_.push_back(op); }

 private:
  using Buffers = c10::SmallVector<Tracked*, 4>;

  static void add(Log& log, const Buffers& buffers) {
    log.add(buffers.size());
    for (const Tracked* each : buffers) log.add(*each);
  }

  Call call_;
  Place place_;
  std::int64_t node_ = -1, variable_ = 0;
  Buffers made_, resized_;
  c10::SmallVector<StepOp, 2> ops_;
  std::vector<std::int64_t> arguments_;
};

/// Calls f. An error ends the recording and not the job.
template <class F>
void safely(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    const std::lock_guard lock{core().mutex};
    recording = false;
    core().log.cancel();
    if (core().error.empty()) core().error = error.what();
  }
}

const Operator& look_up(const c10::OperatorHandle& op) {
  const std::lock_guard lock{core().mutex};
  return core().operators.look_up(op);
}

void look(const c10::OperatorHandle& op, DispatchKeySet below, Stack* stack) {
  if (following) return core().follower.follow(op, below, stack);
  if (!recording || tidepool_cells[kResting] > 0) return proceed(op, below, stack);
  const Operator& facts = look_up(op);
  if (!facts.records) return proceed(op, below, stack);
  if (facts.views) {
    safely(&note_view);
    return proceed(op, below, stack);
  }
  Recorded recorded{facts};
  safely([&] { recorded.begin(*stack); });
  const std::int64_t begin = now();
  proceed(op, below, stack);
  const std::int64_t end = now();
  if (recording) safely([&] { recorded.end(*stack, begin, end); });
}

void see(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  if (dispatch_subclass(op, keys, stack)) return;
  const c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  look(op, keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kKey), stack);
}

/// In the place of see(), if the library of values calls it. That library also sees the ops that an op calls.
void see_first(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  if (included && !is_inside && dispatch_subclass(op, keys, stack)) return;
  const DispatchKeySet below = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kKey);
  if (!included || is_inside) return proceed(op, below, stack);
  is_inside = true;
  const auto leave = c10::make_scope_exit([] { is_inside = false; });
  look(op, below, stack);
}

void* (*values_library)(void* first) = nullptr;

void include(bool includes) {
  if (!values_library) return c10::impl::tls_set_dispatch_key_included(kKey, includes);
  if (!behind && includes) behind = reinterpret_cast<Proceed>(values_library(reinterpret_cast<void*>(&see_first)));
  included = includes;
}

/// A process that the job forks is not recorded. Its lock may be held by a thread that it does not have.
void leave_child() {
  recording = following = false;
  new (&core().mutex) std::mutex;
  core().forked = true;
  include(false);
}

int copy_text(const std::string& text, char* out, int size) {
  if (static_cast<int>(text.size()) < size) std::memcpy(out, text.c_str(), text.size() + 1);
  return static_cast<int>(text.size());
}

}  // namespace
}  // namespace tidepool::native

using namespace tidepool::native;

extern "C" {

/// Registers the function that sees ops. values: tidepool_values_behind() of the library of values, which has the key
/// then, or null. Returns whether it did: PyTorch may use the key itself.
int tidepool_install(void* (*values)(void*)) {
  if (core().library || values_library) return 1;
  if (values) {
    values_library = values;
    pthread_atfork(nullptr, nullptr, &leave_child);
    return 1;
  }
  try {
    auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&see>());
    core().library = std::move(library);
    pthread_atfork(nullptr, nullptr, &leave_child);
  } catch (const std::exception&) {
    return 0;
  }
  return 1;
}

/// Ends of storages are noticed from now on. is_user: whether a file is the user's code; on_gpu: whether memory of
/// the CPU is host memory; otherwise its ends are noticed at once; values: whether the log has values of arguments
/// and results.
void tidepool_begin(UserLine::IsUser is_user, int on_gpu, int values) {
  core().lines.set_judge(is_user);
  core().storages.set_exact(on_gpu == 0);
  core().on_gpu = on_gpu != 0;
  core().values = values != 0;
  core().empty = core().operators.name("aten::empty");
  core().error.clear();
  core().follower.error.clear();
  recording = true;
}

/// Ops are recorded from now on, on this thread and in its backward passes; or no more.
void tidepool_include(int includes) { include(includes != 0); }

/// Whether the ops of this thread are Tidepool's own from now on. Returns whether they were.
int tidepool_aside(int aside) { return std::exchange(is_inside, aside != 0); }

/// Ends recording, on the thread that began it. The caller has the interpreter's lock.
void tidepool_stop() {
  include(false);
  if (core().forked) return;
  Dead dead;
  const std::lock_guard lock{core().mutex};
  recording = following = false;
  core().follower.recipes.clear();
  core().storages.release();
  dead = core().storages.take_dead();
  core().lines.clear();
}

/// What ended the recording; "" if nothing did.
int tidepool_error(char* out, int size) {
  return copy_text(core().error.empty() ? core().follower.error : core().error, out, size);
}

/// The words of the log since the last call. They are valid until the next one.
std::int64_t tidepool_take(const std::int64_t** words) {
  const std::lock_guard lock{core().mutex};
  core().taken.clear();
  core().log.swap(core().taken);
  tidepool_cells[kWords] = 0;
  *words = core().taken.data();
  return static_cast<std::int64_t>(core().taken.size());
}

/// The number of the storage of a TensorImpl; 0 if it has none.
std::int64_t tidepool_number_of(std::int64_t tensor) {
  auto* const impl = reinterpret_cast<c10::TensorImpl*>(tensor);
  if (!impl->has_storage() || impl->layout() != c10::kStrided) return 0;
  const std::lock_guard lock{core().mutex};
  return core().storages.number_of(impl->unsafe_storage().unsafeGetStorageImpl());
}

/// The buffer of a storage is host memory.
void tidepool_set_host(std::int64_t number) {
  const std::lock_guard lock{core().mutex};
  if (Tracked* const tracked = core().storages.find(number)) tracked->kind = Kind::kHost;
}

/// The name of an op with that of its overload, as in aten::add_.Tensor. Returns its length.
int tidepool_operator(std::int64_t number, char* out, int size) {
  const c10::FunctionSchema& schema = core().operators.schema(number);
  const std::string& overload = schema.overload_name();
  return copy_text(schema.name() + (overload.empty() ? "" : "." + overload), out, size);
}

/// The path of a file of the user's code.
int tidepool_file(int number, char* out, int size) {
  return copy_text(core().lines.files()[static_cast<std::size_t>(number - 1)], out, size);
}

int tidepool_device_type(int type, char* out, int size) {
  return copy_text(c10::DeviceTypeName(static_cast<c10::DeviceType>(type), true), out, size);
}

/// The number of the name of an op, without the overload.
std::int64_t tidepool_name(const char* name) {
  const std::lock_guard lock{core().mutex};
  return core().operators.name(name);
}

int tidepool_name_text(std::int64_t name, char* out, int size) {
  return copy_text(core().operators.text(name), out, size);
}

int tidepool_element_type(std::int64_t tensor) {
  return static_cast<int>(c10::typeMetaToScalarType(reinterpret_cast<c10::TensorImpl*>(tensor)->dtype()));
}
}

#include "tracer/native/follower_interface.hpp"
