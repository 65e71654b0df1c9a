#include "tracer/dry/device/dry_device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "tracer/dry/device/collective_call.hpp"
#include "tracer/dry/device/device_count.hpp"
#include "tracer/dry/device/host_memory.hpp"
#include "tracer/dry/device/library_call.hpp"
#include "traces/base/error.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool::dry {
namespace {

thread_local Status last_status = kSuccess;
thread_local int current_device = 0;
bool in_use = false;  // the program has used the device

constexpr std::uint64_t kEndless = std::uint64_t{4} << 40;  // memory that no job fills is that of no device

/// The bytes that the environment gives, as in "24GiB"; none if it does not.
std::optional<std::uint64_t> bytes_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == 0) return {};
  return static_cast<std::uint64_t>(parse_bytes(text).count());
}

/// The device's memory, with that of the context.
std::uint64_t limit_of(const DevicePreset& preset) {
  return bytes_in("TIDEPOOL_DRY_CAPACITY").value_or(preset.total_bytes);
}

std::uint64_t capacity_of(const DevicePreset& preset) {
  const std::uint64_t limit = limit_of(preset);
  return limit > preset.context_bytes ? limit - preset.context_bytes : 0;
}

const DevicePreset& wanted_preset() {
  const char* const name = std::getenv("TIDEPOOL_DRY_DEVICE");
  return device_preset(name != nullptr && *name != 0 ? name : "h100-80gb");
}

Placement wanted_placement() {
  const char* const name = std::getenv("TIDEPOOL_DRY_PLACEMENT");
  return name != nullptr && std::string_view{name} == "top-down" ? Placement::kTopDown : Placement::kLowestFirst;
}

/// The computation on sizes that a launch asks for. None for other kernels, and if a range that it reads or writes is
/// not within one allocation.
std::optional<SizeWork> sizes_of(const Launch& launch, const void* const* arguments) {
  const Kernel& kernel = *launch.kernel;
  std::optional<SizeWork> work;
  if (arguments == nullptr) return work;
  if (kernel.sizes) {
    if (const auto sizes = size_reduction(*kernel.sizes, kernel.binary.parameters, arguments))
      work = SizeWork{
          {{sizes->from, sizes->bytes()}}, {sizes->to, SizeReduction::kBytes}, [sizes = *sizes] { sizes.compute(); }};
  } else if (kernel.adds) {
    if (const auto sizes = size_addition(*kernel.adds, kernel.binary.parameters, arguments)) {
      work =
          SizeWork{{{sizes->from, sizes->bytes()}}, {sizes->to, sizes->bytes()}, [sizes = *sizes] { sizes.compute(); }};
      if (sizes->others != 0) work->reads.push_back({sizes->others, sizes->bytes()});
    }
  }
  const auto known = [](const ByteRange& range) {
    const auto found = DryDevice::get().memory().find(range.address);
    return found && range.address + range.bytes <= found->address + found->bytes;
  };
  if (!work || !known(work->writes) || !std::ranges::all_of(work->reads, known)) return {};
  return work;
}

std::unique_ptr<Kernel> make_kernel(std::string name, const KernelBinary* binary) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = std::move(name);
  if (binary == nullptr) return kernel;
  kernel->binary = *binary;
  kernel->known = true;
  cupti::apply_types(kernel->binary.parameters, cupti::parameter_types(kernel->name));
  kernel->sizes = size_operator(kernel->name);
  kernel->adds = size_operands(kernel->name);
  kernel->torch = cupti::TorchKernel::recognise(kernel->name, kernel->binary.parameters);
  return kernel;
}

/// Fetches the results that must be there before the program overwrites the range.
void before_write(const ByteRange& range) {
  pending_results().fetch_readers(range.address, range.bytes);
  pending_results().fetch(range.address, range.bytes);
}

}  // namespace

DryDevice& DryDevice::get() {
  // Never destroyed: programs call the runtime from their own exit handlers.
  static DryDevice* const dry_device = [] {
    try {
      auto* const made = new DryDevice;
      in_use = true;
      return made;
    } catch (const std::exception& error) {
      std::fputs(fmt::format("tidepool dry run: {}\n", error.what()).c_str(), stderr);
      std::_Exit(2);
    }
  }();
  return *dry_device;
}

DryDevice::DryDevice()
    : preset_{wanted_preset()},
      devices_{device_count()},
      // A process may be forked from one that has loaded the runtime, and have its own capacity.
      memory_{[this] { return capacity_of(preset_); }, wanted_placement()},
      recorder_{preset_} {
  static_cast<void>(capacity_of(preset_));  // ends the process if it is wrong
  pthread_atfork([] { get().before_fork(); }, [] { get().after_fork(); },
                 [] {
                   get().recorder_.forget();
                   get().after_fork();
                 });
}

void DryDevice::before_fork() {
  held_ = {std::unique_lock{mutex_}, recorder_.hold(), memory_.hold(), pinned_memory().hold()};
}

void DryDevice::after_fork() { held_ = {}; }

int DryDevice::device() { return current_device; }

std::uint64_t DryDevice::limit() const { return limit_of(preset_); }

std::uint64_t DryDevice::total() const {
  if (const auto stated = bytes_in("TIDEPOOL_DRY_TOTAL")) return *stated;
  return limit() < kEndless ? limit() : preset_.total_bytes;
}

std::uint64_t DryDevice::free() const {
  const std::uint64_t taken = memory_.in_use() + preset_.context_bytes;
  return std::min(memory_.capacity() - memory_.in_use(), total() - std::min(total(), taken));
}

bool DryDevice::set_device(int device) {
  if (device < 0 || device >= devices_) return false;
  current_device = device;
  return true;
}

bool DryDevice::owns_device() {
  if (recorder_.uses_device(static_cast<std::uint32_t>(current_device))) return true;
  not_answered("memory on two devices in one process");
  return false;
}

std::optional<std::uint64_t> DryDevice::allocate(std::size_t bytes) {
  if (!owns_device()) return std::nullopt;
  const auto address = memory_.allocate(bytes);
  if (address) recorder_.allocated(*address, bytes);
  return address;
}

bool DryDevice::free(std::uint64_t address) {
  const auto range = memory_.find(address);
  if (!range || range->address != address) return false;
  pending_results().drop(address, range->bytes);
  recorder_.freed(address, range->bytes);  // before another thread can allocate the same address
  return memory_.free(address);
}

Stream& DryDevice::stream(void* handle) {
  constexpr std::uintptr_t kPerThread = 2;
  return reinterpret_cast<std::uintptr_t>(handle) <= kPerThread ? default_stream_ : *static_cast<Stream*>(handle);
}

Stream* DryDevice::make_stream(unsigned flags, int priority) {
  auto made = std::make_unique<Stream>();
  const std::lock_guard lock{mutex_};
  made->id = ++last_stream_;
  made->flags = flags;
  made->priority = priority;
  return made.release();
}

Event* DryDevice::make_event() {
  auto made = std::make_unique<Event>();
  const std::lock_guard lock{mutex_};
  made->id = ++last_event_;
  return made.release();
}

void DryDevice::submit(Stream& stream, std::function<void(Stream&)> work) {
  if (stream.capture != nullptr)
    stream.capture->work.push_back(std::move(work));
  else
    work(stream);
}

void DryDevice::launch(Stream& stream, const Launch& launch, const void* const* arguments) {
  submit(stream, [this, work = recorder_.work_of(launch, arguments), sizes = sizes_of(launch, arguments)](Stream& on) {
    recorder_.ran(on, work);
    if (sizes) compute(on, *sizes);
  });
}

void DryDevice::compute(Stream& stream, const SizeWork& sizes) {
  PendingResults& results = pending_results();
  const auto fetch = [reads = sizes.reads] {
    for (const ByteRange& range : reads) pending_results().fetch(range.address, range.bytes);
  };
  const auto pending = [&](const ByteRange& range) { return results.belong(range.address, range.bytes); };
  const auto overwritten = [&](const ByteRange& range) { return range.overlaps(sizes.writes); };
  if (std::ranges::any_of(sizes.reads, overwritten)) fetch();
  before_write(sizes.writes);
  if (std::ranges::none_of(sizes.reads, pending)) return sizes.compute();
  const auto compute_later = [fetch, compute = sizes.compute] {
    fetch();
    compute();
  };
  results.depend(stream.results, results.add(sizes.writes.address, sizes.writes.bytes, compute_later, sizes.reads));
}

void DryDevice::call(Stream& stream, const LibraryCall& call) {
  submit(stream, [this, work = recorder_.work_of(call)](Stream& on) { recorder_.ran(on, work); });
}

void DryDevice::call(Stream& stream, const CollectiveCall& call) {
  submit(stream, [this, call, work = recorder_.work_of(call)](Stream& on) {
    Work now = work;
    now.collective->sequence = next_sequence(call);
    recorder_.ran(on, now);
    if (const auto result = exchange(call, now.collective->sequence)) pending_results().depend(on.results, *result);
  });
}

void DryDevice::copy(Stream& stream, void* to, const void* from, std::size_t bytes) {
  const auto target = reinterpret_cast<std::uint64_t>(to), source = reinterpret_cast<std::uint64_t>(from);
  const bool to_device = memory_.owns(target), from_device = memory_.owns(source);
  const raw::CopyKind kind = to_device ? (from_device ? raw::CopyKind::kDtoD : raw::CopyKind::kHtoD)
                                       : (from_device ? raw::CopyKind::kDtoH : raw::CopyKind::kHtoH);
  submit(stream, [=, this, work = recorder_.copy(target, source, bytes, kind)](Stream& on) {
    if (from_device) pending_results().fetch(source, bytes);
    if (to_device) before_write({target, bytes});
    copy_bytes(to, from, bytes, to_device);
    recorder_.ran(on, work);
  });
}

void DryDevice::fill(Stream& stream, void* to, unsigned char value, std::size_t bytes) {
  submit(stream, [=, this, work = recorder_.fill(reinterpret_cast<std::uint64_t>(to), value, bytes)](Stream& on) {
    before_write({reinterpret_cast<std::uint64_t>(to), bytes});
    fill_bytes(to, value, bytes);
    recorder_.ran(on, work);
  });
}

void DryDevice::record(Event& event, Stream& stream) {
  event.capture = stream.capture;
  if (event.capture != nullptr) return;
  event.results.clear();
  pending_results().depend(event.results, stream.results);
  recorder_.event_recorded(stream, event);
}

void DryDevice::wait(Stream& stream, const Event& event) {
  if (event.capture != nullptr) {  // waiting for captured work makes a stream part of the capture
    stream.capture = event.capture;
    event.capture->streams.insert(&stream);
  } else {
    pending_results().depend(stream.results, event.results);
    recorder_.event_awaited(stream, event);
  }
}

void DryDevice::register_function(const void* host, const char* name, const std::byte* fat_binary) {
  const std::lock_guard lock{mutex_};
  functions_.insert_or_assign(host, Registered{name, fat_binary});
}

void DryDevice::register_variable(const void* host, std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  variables_.insert_or_assign(host, std::pair{bytes, std::uint64_t{0}});
}

const Kernel* DryDevice::kernel(const void* host) {
  const std::lock_guard lock{mutex_};
  if (const auto known = kernels_.find(host); known != kernels_.end()) return known->second.get();
  const auto registered = functions_.find(host);
  if (registered == functions_.end()) return nullptr;
  const auto [name, fat_binary] = registered->second;
  auto [layouts, fresh] = layouts_.try_emplace(fat_binary);
  if (fresh) {
    const Cubin cubin = cubin_for_device(fat_binary, preset_.major, preset_.minor);
    layouts->second = read_cubin(cubin.bytes);
    for (auto& [known, kernel_binary] : layouts->second) kernel_binary.capability = cubin.capability;
  }
  const auto layout = layouts->second.find(name);
  return kernels_.emplace(host, make_kernel(name, layout == layouts->second.end() ? nullptr : &layout->second))
      .first->second.get();
}

const Module* DryDevice::load_module(std::span<const std::byte> image) {
  auto module = std::make_unique<Module>();
  const Cubin cubin = cubin_of_image(image, preset_.major, preset_.minor);
  module->known = !cubin.bytes.empty();
  module->kernels = read_cubin(cubin.bytes);
  const std::lock_guard lock{mutex_};
  const Module* const handle = module.get();
  return modules_.emplace(handle, std::move(module)).first->second.get();
}

bool DryDevice::unload_module(const void* module) {
  const std::lock_guard lock{mutex_};
  return modules_.erase(module) > 0;
}

Status DryDevice::function(const Kernel*& kernel, const void* module, const char* name) {
  const std::lock_guard lock{mutex_};
  const auto loaded = modules_.find(module);
  if (loaded == modules_.end()) return kInvalidHandle;
  const auto binary = loaded->second->kernels.find(name);
  if (loaded->second->known && binary == loaded->second->kernels.end()) return kNotFound;
  auto made = make_kernel(name, loaded->second->known ? &binary->second : nullptr);
  kernel = made.get();
  kernels_.emplace(kernel, std::move(made));
  return kSuccess;
}

void DryDevice::state_uses(const void* kernel, std::string_view letters) {
  const std::lock_guard lock{mutex_};
  const auto known = kernels_.find(kernel);
  if (known == kernels_.end()) return;
  known->second->roles.clear();
  for (const char letter : letters)
    known->second->roles.push_back(letter == 'r'   ? cupti::Role::kRead
                                   : letter == 'w' ? cupti::Role::kWrite
                                   : letter == 'b' ? cupti::Role::kReadWrite
                                                   : cupti::Role::kNone);
}

void* DryDevice::variable(const void* host) {
  const std::lock_guard lock{mutex_};
  const auto found = variables_.find(host);
  if (found == variables_.end()) return nullptr;
  auto& [bytes, address] = found->second;
  if (address == 0) address = memory_.allocate(std::max<std::size_t>(bytes, 1)).value_or(0);
  return reinterpret_cast<void*>(address);
}

Status done(Status status) {
  if (status != kSuccess) last_status = status;
  return status;
}

Status last_error() { return last_status; }
Status take_last_error() { return std::exchange(last_status, kSuccess); }

const char* status_name(Status status) {
  switch (status) {
    case kSuccess:
      return "cudaSuccess";
    case kInvalidValue:
      return "cudaErrorInvalidValue";
    case kOutOfMemory:
      return "cudaErrorMemoryAllocation";
    case kNoDevice:
      return "cudaErrorNoDevice";
    case kInvalidDevice:
      return "cudaErrorInvalidDevice";
    case kInvalidHandle:
      return "cudaErrorInvalidResourceHandle";
    case kNotSupported:
      return "cudaErrorNotSupported";
    case kNotFound:
      return "cudaErrorSymbolNotFound";
    default:
      return "cudaErrorUnknown";
  }
}

const char* status_text(Status status) {
  switch (status) {
    case kSuccess:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNoDevice:
      return "no CUDA-capable device is detected";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kInvalidHandle:
      return "invalid resource handle";
    case kNotSupported:
      return "not answered by tidepool's dry run";
    case kNotFound:
      return "named symbol not found";
    default:
      return "unknown error";
  }
}

void not_answered(const char* what) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  const std::lock_guard lock{mutex};
  if (!said.emplace(what).second) return;
  std::fputs(
      fmt::format("tidepool dry run: the program asked for {}, which the dry run does not answer\n", what).c_str(),
      stderr);
}

void* real_function(const char* library, const char* name) {
  struct Search {
    std::string_view library;
    std::string path;
  } search{library, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const std::string_view path{info->dlpi_name == nullptr ? "" : info->dlpi_name};
        if (!path.substr(path.rfind('/') + 1).starts_with(wanted.library)) return 0;
        wanted.path = path;
        return 1;
      },
      &search);
  if (search.path.empty()) return nullptr;
  void* const handle = dlopen(search.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

namespace {

/// A process that torchrun starts sees a device for each local process if CUDA_VISIBLE_DEVICES is "0", as
/// `tidepool record --dry` sets it by default.
[[gnu::constructor]] void show_devices() {
  const char* const processes = std::getenv("LOCAL_WORLD_SIZE");
  const char* const devices = std::getenv("CUDA_VISIBLE_DEVICES");
  if (processes == nullptr || devices == nullptr || devices != device_list(1)) return;
  const long count = std::strtol(processes, nullptr, 10);
  if (count > 1)
    setenv("CUDA_VISIBLE_DEVICES", device_list(static_cast<int>(std::min<long>(count, kMostDevices))).c_str(), 1);
}

/// Ends the recording when the program ends or the library is unloaded.
[[gnu::destructor]] void end_recording() {
  if (in_use) DryDevice::get().recorder().close();
}

/// Ends the recording and the process: a program that calls _exit or _Exit runs no destructors.
[[noreturn]] void exit_at_once(int status) {
  if (in_use) DryDevice::get().recorder().close_at_exit();
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace
}  // namespace tidepool::dry

#pragma GCC visibility push(default)
extern "C" {
/// Called by PyTorch's hook at the end of an iteration, so that the file of a killed program is complete up to its last
/// iteration.
void tidepool_flush() {
  if (tidepool::dry::in_use) tidepool::dry::DryDevice::get().recorder().flush();
}
/// Called by PyTorch's hook: a fact for the trace's metadata.
void tidepool_state(const char* key, const char* value) {
  if (tidepool::dry::in_use) tidepool::dry::DryDevice::get().recorder().state(key, value);
}
/// Called by Tidepool's Python when Triton has loaded a kernel; see state_uses().
void tidepool_kernel_uses(const void* kernel, const char* letters) {
  tidepool::dry::DryDevice::get().state_uses(kernel, letters);
}
void _exit(int status) { tidepool::dry::exit_at_once(status); }
void _Exit(int status) noexcept { tidepool::dry::exit_at_once(status); }
}
#pragma GCC visibility pop
