#include "tracer/dry/device/recorder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include "tracer/cupti/kernel_names.hpp"
#include "tracer/cupti/options.hpp"
#include "tracer/cupti/raw_use.hpp"
#include "tracer/dry/device/collective_call.hpp"
#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/host_memory.hpp"
#include "tracer/dry/device/library_call.hpp"

namespace tidepool::dry {
namespace {

constexpr std::uint64_t kLeastNanos = 2'000;        // least time of a kernel: roughly that of an empty one
constexpr double kMemoryShare = 0.85;               // of the memory's peak rate that kernels reach
constexpr double kProductShare = 0.75;              // of the peak rate that large products of matrices reach
constexpr std::uint64_t kLeastCollective = 10'000;  // least time of a collective: roughly that of an empty one

std::int64_t clock_now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

raw::Access raw_access(Access access) {
  switch (access) {
    case Access::kRead:
      return raw::Access::kRead;
    case Access::kWrite:
      return raw::Access::kWrite;
    case Access::kReadWrite:
      return raw::Access::kReadWrite;
    case Access::kTouch:
      break;
  }
  return raw::Access::kTouch;
}

raw::ClockReading clocks() {
  const std::int64_t now = Recorder::now();
  return {now, clock_now(CLOCK_REALTIME), now};
}

void report_failure(int error) {
  std::fputs(fmt::format("tidepool dry run: the disk refuses what is recorded ({}); the job goes on, and the raw file "
                         "has what was written before\n",
                         std::strerror(error))
                 .c_str(),
             stderr);
}

}  // namespace

std::uint32_t thread_id() { return static_cast<std::uint32_t>(gettid()); }

std::uint64_t handle_of(const Stream& stream) { return stream.id == 0 ? 0 : reinterpret_cast<std::uint64_t>(&stream); }

std::int64_t Recorder::now() { return clock_now(CLOCK_MONOTONIC_RAW); }

raw::Writer* Recorder::writer() {
  if (!tried_) {
    tried_ = true;
    if (const char* const folder = std::getenv(cupti::variable::kFolder); folder != nullptr && *folder != 0)
      open(folder);
  }
  return writer_.is_open() ? &writer_ : nullptr;
}

void Recorder::open(const std::string& folder) {
  raw::FileHeader header;
  process_ = getpid();
  const char* const kernel = std::getenv(cupti::variable::kIterationKernel);
  if (kernel != nullptr && std::getenv(cupti::variable::kTorch) == nullptr) iteration_kernel_ = kernel;
  header.process = static_cast<std::uint32_t>(process_);
  header.source = raw::Source::kInterposer;
  header.clock = raw::Clock::kMonotonicRaw;
  header.time = now();
  raw::WriterOptions options;
  options.on_failure = report_failure;
  int error = mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? EEXIST : errno;
  for (int again = 1; error == EEXIST && again < 1000; ++again) {  // exec keeps the id of a process
    const std::string part = again == 1 ? "" : fmt::format(".{}", again);
    error = writer_.open(fmt::format("{}/{}{}.dry.raw", folder, getpid(), part).c_str(), header, options);
  }
  if (error != 0) {
    std::fputs(fmt::format("tidepool dry run: {}: {}; nothing is recorded\n", folder, std::strerror(error)).c_str(),
               stderr);
    return;
  }
  const auto info_of_variable = [&](const char* variable, std::string_view key) {
    if (const char* const value = std::getenv(variable); value != nullptr && *value != 0) append_info(key, value);
  };
  append_info("mode", "dry run: no device; device times are estimates");
  append_info("time", "estimated");
  append_info("gpu", preset_.device_name);
  append_info("setting.dry_device", preset_.name);
  append_info("device_total_bytes", std::to_string(DryDevice::get().limit()));
  append_info("device_told_bytes", std::to_string(DryDevice::get().total()));
  info_of_variable("PYTORCH_CUDA_ALLOC_CONF", "setting.alloc_conf");
  info_of_variable("PYTORCH_ALLOC_CONF", "setting.alloc_conf");  // PyTorch prefers this name
  info_of_variable("PYTORCH_NO_CUDA_MEMORY_CACHING", "setting.no_caching");
  info_of_variable("RANK", "rank");
  writer_.append(clocks());
  if (device_) introduce_device();
}

void Recorder::introduce_device() {
  writer_.append(raw::DeviceInfo{preset_.total_bytes, static_cast<std::uint64_t>(preset_.bytes_per_second),
                                 writer_.text(preset_.device_name), *device_,
                                 static_cast<std::uint32_t>(preset_.multiprocessors),
                                 static_cast<std::uint32_t>(preset_.major * 10 + preset_.minor)});
  writer_.append(raw::Context{kContext, *device_});
}

int Recorder::device() {
  const std::lock_guard lock{mutex_};
  return static_cast<int>(device_.value_or(0));
}

bool Recorder::uses_device(std::uint32_t device) {
  const std::lock_guard lock{mutex_};
  if (device_) return *device_ == device;
  device_ = device;
  if (writer_.is_open()) introduce_device();
  return true;
}

void Recorder::append_info(std::string_view key, std::string_view value) {
  writer_.append(raw::Info{writer_.text(key), writer_.text(value)});
}

void Recorder::append_allocator_record() {
  const std::uint64_t mapped = DryDevice::get().memory().most_in_use(DeviceMemory::Mark::kEver);
  const auto state = [&](std::string_view key, std::uint64_t value) {
    if (value > 0) append_info(key, std::to_string(value));
  };
  state("allocated_peak_bytes", allocator_.most_allocated());
  state("reserved_peak_bytes", allocator_.most_reserved());
  state("held_peak_bytes", allocator_.most_held());
  state("mapped_peak_bytes", mapped);
  state("freed_segments", allocator_.freed_segments());
  state("pinned_peak_bytes", pinned_memory().most());
  state("asked_memory", asked_memory_ ? 1 : 0);
  state("failed_requests", allocator_.failures());
  state("failed_request_bytes", allocator_.failure().requested);
  state("failed_allocated_bytes", allocator_.failure().allocated);
}

void Recorder::write_end() {
  append_allocator_record();
  writer_.append(clocks());
  writer_.close();
}

void Recorder::close() {
  const std::lock_guard lock{mutex_};
  if (writer_.is_open()) write_end();
}

void Recorder::flush() {
  const std::lock_guard lock{mutex_};
  if (!writer_.is_open()) return;
  append_allocator_record();
  writer_.flush();
}

void Recorder::state(std::string_view key, std::string_view value) {
  const std::lock_guard lock{mutex_};
  if (writer() != nullptr) append_info(key, value);
}

void Recorder::allocator_said(std::uint64_t allocated, std::uint64_t reserved) {
  const std::lock_guard lock{mutex_};
  const bool grew = reserved > allocator_.most_reserved();
  allocator_.said(allocated, reserved);
  if (grew && writer() != nullptr) append_allocator_record();  // a killed job leaves no record at its end
}

void Recorder::allocator_failed(const AllocatorRecord::Failure& failure) {
  const std::lock_guard lock{mutex_};
  allocator_.failed(failure);
  if (writer() != nullptr) append_allocator_record();
}

void Recorder::close_at_exit() {
  if (const std::unique_lock lock{mutex_, std::try_to_lock}; lock && writer_.is_open() && process_ == getpid())
    write_end();
}

void Recorder::forget() {
  writer_.abandon();
  tried_ = false;
  introduced_.clear();
}

void Recorder::introduce(const Stream& stream) {
  if (std::find(introduced_.begin(), introduced_.end(), stream.id) != introduced_.end()) return;
  introduced_.push_back(stream.id);
  writer_.append(
      raw::Stream{handle_of(stream), kContext, static_cast<std::uint32_t>(stream.id), stream.priority, stream.flags});
}

raw::Text Recorder::text(std::string_view value) { return writer_.text(value); }

bool Recorder::begins_iteration(const Stream& stream, const Work& work) const {
  return work.kind == Work::Kind::kKernel && !stream.replaying && !iteration_kernel_.empty() &&
         work.name.find(iteration_kernel_) != std::string_view::npos;
}

std::uint64_t Recorder::bytes_used(const std::vector<raw::BufferUse>& uses) const {
  std::vector<std::uint64_t> seen;
  std::uint64_t bytes = 0;
  for (const raw::BufferUse& use : uses)
    if (const auto* const range = buffers_.find(use.address)) {
      if (std::find(seen.begin(), seen.end(), range->begin) != seen.end()) continue;
      seen.push_back(range->begin);
      bytes += range->end - range->begin;
    }
  return bytes;
}

/// ns: the longer of two times, moving every used buffer once or computing, at what kernels reach of the maker's rates.
std::uint64_t Recorder::estimate(const std::vector<raw::BufferUse>& uses, double flops, double peak_flops) const {
  const double seconds = std::max(static_cast<double>(bytes_used(uses)) / (preset_.bytes_per_second * kMemoryShare),
                                  peak_flops > 0 ? flops / (peak_flops * kProductShare) : 0);
  return std::max(kLeastNanos, static_cast<std::uint64_t>(seconds * 1e9));
}

void Recorder::tensor_map_encoded(const std::byte* descriptor, std::uint64_t address) {
  const std::lock_guard lock{mutex_};
  tensor_maps_.add(descriptor, address);
}

Work Recorder::work_of(const Launch& launch, const void* const* arguments) {
  Work work;
  work.issued = now();
  work.kernel = launch.kernel;
  work.name = launch.kernel->name;
  const unsigned grid[] = {launch.grid.x, launch.grid.y, launch.grid.z},
                 block[] = {launch.block.x, launch.block.y, launch.block.z};
  std::copy_n(grid, 3, work.grid);
  std::copy_n(block, 3, work.block);
  work.shared_bytes = launch.shared_bytes;
  work.scanned = launch.kernel->known;
  const std::lock_guard lock{mutex_};
  cupti::ParameterScan scan;
  scan.scan(launch.kernel->binary.parameters, arguments, buffers_, tensor_maps_);
  std::vector<cupti::Role> roles(scan.found().size(), cupti::Role::kUnknown);
  if (launch.kernel->torch && arguments != nullptr)
    roles = launch.kernel->torch->roles(scan.found(), arguments, launch.grid.x);
  const std::vector<cupti::Role>& stated = launch.kernel->roles;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const cupti::FoundPointer& found = scan.found()[i];
    if (found.place == cupti::PointerPlace::kParameter && found.parameter < stated.size())
      roles[i] = stated[found.parameter];
    if (roles[i] == cupti::Role::kNone) continue;
    if (found.live)
      work.uses.push_back(cupti::use_of(found, roles[i]));
    else if (found.place == cupti::PointerPlace::kParameter)
      // Only addresses in the dry device's own device memory are known to be device addresses.
      work.unknown_pointers += DryDevice::get().memory().owns(found.address) ? 1 : 0;
  }
  work.estimate_ns = estimate(work.uses, 0, 0);
  return work;
}

Work Recorder::work_of(const LibraryCall& call) {
  Work work;
  work.issued = now();
  work.name = call.name;
  const std::lock_guard lock{mutex_};
  for (const Operand& operand : call.operands) {
    const auto address = reinterpret_cast<std::uint64_t>(operand.pointer);
    if (buffers_.find(address) != nullptr)
      work.uses.push_back({address, 0, 0, 0, raw_access(operand.access), raw::Evidence::kSchema});
  }
  work.estimate_ns = estimate(work.uses, call.flops, call.tensor_cores ? preset_.flops : preset_.flops_single);
  return work;
}

Work Recorder::work_of(const CollectiveCall& call) {
  constexpr std::uint64_t kBlock = 512;  // PyTorch's allocator rounds sizes up to blocks of 512 B
  Work work;
  work.issued = now();
  work.name = call.function;
  const std::lock_guard lock{mutex_};
  const auto use = [&](const void* pointer, std::uint64_t bytes, raw::Access access) {
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const auto* const range = bytes == 0 ? nullptr : buffers_.find(address);
    if (range == nullptr) return;
    const bool whole = address == range->begin && range->end - address < bytes + kBlock;
    work.uses.push_back({address, whole ? 0 : bytes, 0, 0, access, raw::Evidence::kSchema});
  };
  use(call.input, call.input_bytes, raw::Access::kRead);
  use(call.output, call.output_bytes, raw::Access::kWrite);
  work.estimate_ns =
      std::max(kLeastCollective, static_cast<std::uint64_t>(call.moved_bytes * 1e9 / preset_.link_bytes_per_second));
  raw::Collective& collective = work.collective.emplace();
  collective.communicator = call.communicator->id();
  collective.size = std::max(call.input_bytes, call.peer ? call.output_bytes : 0);
  if (call.peer) collective.peer = *call.peer;
  work.collective_name = call.name;
  return work;
}

void Recorder::joined(std::uint64_t communicator, std::uint32_t rank, std::uint32_t ranks) {
  const std::lock_guard lock{mutex_};
  if (writer() != nullptr) writer_.append(raw::Communicator{communicator, rank, ranks});
}

Work Recorder::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, raw::CopyKind kind) {
  Work work;
  work.issued = now();
  work.kind = Work::Kind::kCopy;
  work.copy = kind;
  work.to = to;
  work.from = from;
  work.bytes = bytes;
  const double rate = kind == raw::CopyKind::kDtoD ? preset_.bytes_per_second * kMemoryShare / 2 : host_link(preset_);
  work.estimate_ns = std::max(kLeastNanos, static_cast<std::uint64_t>(static_cast<double>(bytes) / rate * 1e9));
  return work;
}

Work Recorder::fill(std::uint64_t to, unsigned char value, std::uint64_t bytes) {
  Work work;
  work.issued = now();
  work.kind = Work::Kind::kFill;
  work.to = to;
  work.bytes = bytes;
  work.value = value;
  work.estimate_ns = std::max(kLeastNanos, static_cast<std::uint64_t>(static_cast<double>(bytes) /
                                                                      (preset_.bytes_per_second * kMemoryShare) * 1e9));
  return work;
}

void Recorder::ran(Stream& stream, const Work& work) {
  const std::lock_guard lock{mutex_};
  const std::int64_t issued = stream.replaying ? now() : work.issued;
  const std::int64_t start = std::max(issued, static_cast<std::int64_t>(stream.end_ns));
  const std::int64_t end = start + static_cast<std::int64_t>(work.estimate_ns);
  stream.end_ns = static_cast<std::uint64_t>(end);
  if (writer() == nullptr) return;
  introduce(stream);
  const std::uint32_t correlation = ++last_correlation_, number = static_cast<std::uint32_t>(stream.id);

  if (begins_iteration(stream, work)) {
    raw::Range mark;
    mark.time = issued;
    mark.name = text(work.name);
    mark.thread = thread_id();
    mark.action = raw::RangeAction::kMark;
    mark.meaning = raw::Meaning::kIteration;
    writer_.append(mark);
  }
  raw::Launch launch;
  launch.start = issued;
  launch.end = now();
  launch.function = reinterpret_cast<std::uint64_t>(work.kernel);
  launch.correlation = correlation;
  launch.context = kContext;
  launch.stream = number;
  launch.thread = thread_id();
  launch.unknown_pointers = work.unknown_pointers;
  launch.flags = work.scanned ? 0 : raw::kNotScanned;
  writer_.append(launch, work.uses);

  if (work.kind == Work::Kind::kKernel) {
    raw::Kernel kernel;
    kernel.start = start;
    kernel.end = end;
    kernel.name = text(work.name);
    kernel.device = device_.value_or(0);
    kernel.context = kContext;
    kernel.stream = number;
    kernel.correlation = correlation;
    std::copy_n(work.grid, 3, kernel.grid);
    std::copy_n(work.block, 3, kernel.block);
    kernel.dynamic_shared = static_cast<std::uint32_t>(work.shared_bytes);
    if (work.kernel != nullptr) {
      kernel.static_shared = work.kernel->binary.shared_bytes;
      kernel.registers = work.kernel->binary.registers;
    }
    writer_.append(kernel);
    if (work.collective) {
      raw::Collective collective = *work.collective;
      collective.name = text(work.collective_name);
      collective.correlation = correlation;
      writer_.append(collective);
    }
  } else if (work.kind == Work::Kind::kCopy) {
    raw::Copy copy;
    copy.start = start;
    copy.end = end;
    copy.size = work.bytes;
    copy.from = work.from;
    copy.to = work.to;
    copy.device = device_.value_or(0);
    copy.context = kContext;
    copy.stream = number;
    copy.correlation = correlation;
    copy.copy = work.copy;
    writer_.append(copy);
  } else {
    raw::Memset fill;
    fill.start = start;
    fill.end = end;
    fill.size = work.bytes;
    fill.address = work.to;
    fill.device = device_.value_or(0);
    fill.context = kContext;
    fill.stream = number;
    fill.correlation = correlation;
    fill.value = work.value;
    fill.memory = raw::MemoryKind::kDevice;
    writer_.append(fill);
  }
}

void Recorder::event_recorded(Stream& stream, Event& event) {
  const std::lock_guard lock{mutex_};
  stream.end_ns = std::max(stream.end_ns, static_cast<std::uint64_t>(now()));  // an idle stream reaches it at once
  event.time_ns = stream.end_ns;
  if (writer() == nullptr) return;
  raw::EventRecord record;
  record.time = now();
  record.device_time = static_cast<std::int64_t>(stream.end_ns);
  record.context = kContext;
  record.stream = static_cast<std::uint32_t>(stream.id);
  record.event = static_cast<std::uint32_t>(event.id);
  writer_.append(record);
}

void Recorder::event_awaited(Stream& stream, const Event& event) {
  const std::lock_guard lock{mutex_};
  stream.end_ns = std::max(stream.end_ns, event.time_ns);
  if (writer() == nullptr) return;
  raw::Sync record;
  record.start = record.end = now();
  record.context = kContext;
  record.stream = static_cast<std::uint32_t>(stream.id);
  record.event = static_cast<std::uint32_t>(event.id);
  record.sync = raw::SyncKind::kStreamWaitsEvent;
  writer_.append(record);
}

}  // namespace tidepool::dry
