// A fake of NVIDIA's driver, loaded as libcuda.so.1 on machines without a GPU. Its device memory, up to 64 MiB,
// can be reached by the fake only, and its kernels are those of kernels.cu. Its streams are queues. They advance
// only when the program queries a stream or an event, frees memory, or destroys a stream or an executable graph. The
// seed chooses an order that events allow. So with some seeds, work that the program does not wait for is done too late
// or too early. Like NVIDIA's driver, the fake refuses calls with unknown or released handles, on threads without a
// context, for ranges beyond an allocation, and calls that a capture does not allow.
//
// TIDEPOOL_FAKE, read by cuInit, has its settings, as in "seed=3,memory=1048576":
//   seed     decides which stream advances; an even seed has a stream that is always first, an odd one a stream that
//            is always last
//   memory   bytes of the device's memory; pinned: bytes of pinned memory
//   devices  number of devices
//   lose     the number of a wait for an event, from 1: this wait does nothing; 0: none
//   hang     the number of a stream, from 1: this stream never advances; 0: none
//   die      the number of a command, from 1: it fails, and so does every later call; 0: none
//   large    number of allocations of 1 MiB or more that succeed, device and pinned memory together
//   graphs   number of graphs for which there is memory
//   maps     0: memory cannot be mapped page by page
//   submit   ns that the host takes for a command outside of graphs
//   launch   ns that the host takes to launch a graph
//   upload   ns that the device takes for the first launch of a graph that was not uploaded
//   gap      ns before each kernel; tick: ns between two values of the global timer
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/fake_cuda/memory.hpp"
#include "tests/fake_cuda/ranges.hpp"
#include "tests/fake_cuda/world.hpp"

namespace tidepool::cuda {
namespace {

constexpr double kLatency = 10'000, kBytesPerNanosecond = 12;  // of a copy, in either direction

ContextTag the_context;
thread_local Context current = nullptr;

Status answer(bool done) {
  if (world().failure != kSuccess) return world().failure;
  return done ? kSuccess : kErrorNotReady;
}

bool is_host_memory(const void* memory) { return !is_device_address(reinterpret_cast<std::uint64_t>(memory)); }

Status move(StreamTag* stream, void* to, const void* from, std::size_t size) {
  return give(stream, Item{.work = [=](double& now) {
                std::memcpy(to, from, size);
                now += kLatency + static_cast<double>(size) / kBytesPerNanosecond;
                return kSuccess;
              }});
}

/// A copy between memory that a stream can reach by itself: device memory, or pinned memory. Refuses other memory.
Status move_async(StreamTag* stream, std::uint64_t to, bool to_device, std::uint64_t from, bool from_device,
                  std::size_t size) {
  if (const Status status = ready(stream); status != kSuccess) return status;
  const auto reaches = [&](std::uint64_t address, bool device) {
    return device ? is_device_memory(address, size) : is_pinned_memory(address, size);
  };
  if (!reaches(to, to_device) || !reaches(from, from_device)) return kInvalid;
  return move(stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
}

Status record(EventTag* event, StreamTag* stream, bool external) {
  if (const Status status = ready(event, stream); status != kSuccess) return status;
  World& w = world();
  const bool captured = w.capture != nullptr && w.capture->streams.contains(stream);
  if (external && !captured) return kInvalid;
  event->latest = std::make_shared<Record>();
  event->captured = captured && !external;
  if (event->captured) w.capture->forked[event->latest.get()] = stream;
  return give(stream, Item{.record = event->latest, .external = external});
}

bool is_captured(StreamTag* stream) { return world().capture != nullptr && world().capture->streams.contains(stream); }

}  // namespace

Status ready() {
  if (!world().initialized) return kNotInitialized;
  if (current == nullptr || world().retained == 0) return kInvalidContext;
  return world().failure;
}

extern "C" {

Status cuInit(unsigned flags) {
  if (flags != 0) return kInvalid;
  World& w = world();
  w.settings = {};
  std::istringstream text{std::getenv("TIDEPOOL_FAKE") != nullptr ? std::getenv("TIDEPOOL_FAKE") : ""};
  const std::map<std::string, std::uint64_t Settings::*> known{
      {"seed", &Settings::seed},       {"memory", &Settings::memory}, {"pinned", &Settings::pinned},
      {"devices", &Settings::devices}, {"lose", &Settings::lose},     {"hang", &Settings::hang},
      {"die", &Settings::die},         {"maps", &Settings::maps},     {"submit", &Settings::submit},
      {"upload", &Settings::upload},   {"gap", &Settings::gap},       {"tick", &Settings::tick},
      {"large", &Settings::large},     {"launch", &Settings::launch}, {"graphs", &Settings::graphs}};
  for (std::string part; std::getline(text, part, ',');) {
    const auto at = part.find('=');
    w.settings.*known.at(part.substr(0, at)) = std::stoull(part.substr(at + 1));
  }
  w.random.seed(w.settings.seed);
  w.lost.insert(w.lost.end(), w.streams.begin(), w.streams.end());
  w.streams.clear();
  w.capture.reset();
  w.waits = w.given = 0;
  w.failure = kSuccess;
  w.initialized = true;
  return kSuccess;
}

Status cuDeviceGetCount(int* count) {
  *count = static_cast<int>(world().settings.devices);
  return world().initialized ? kSuccess : kNotInitialized;
}
Status cuDeviceGet(Device* device, int index) {
  *device = index;
  return index >= 0 && index < static_cast<int>(world().settings.devices) ? kSuccess : kInvalidDevice;
}
Status cuDeviceGetName(char* name, int size, Device) {
  std::strncpy(name, "fake", static_cast<std::size_t>(size));
  return kSuccess;
}
Status cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = attribute == kAttributeMajor        ? 9
           : attribute == kAttributeMinor      ? 0
           : attribute == kAttributeMapsMemory ? static_cast<int>(world().settings.maps)
                                               : 2;
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(Context* context, Device) {
  if (!world().initialized) return kNotInitialized;
  ++world().retained;
  *context = &the_context;
  return kSuccess;
}
Status cuDevicePrimaryCtxRelease_v2(Device) {
  if (world().retained == 0) return kInvalidContext;
  --world().retained;
  return kSuccess;
}
Status cuCtxSetCurrent(Context context) {
  if (context != nullptr && (context != &the_context || world().retained == 0)) return kInvalidContext;
  current = context;
  return kSuccess;
}
Status cuMemcpyHtoD_v2(Address to, const void* from, std::size_t size) {
  if (const Status status = ready(); status != kSuccess) return status;
  if (!is_device_memory(to, size) || !is_host_memory(from)) return kInvalid;
  const DeviceAccess access;
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return kSuccess;
}
Status cuMemcpyDtoH_v2(void* to, Address from, std::size_t size) {
  if (const Status status = ready(); status != kSuccess) return status;
  if (!is_device_memory(from, size) || !is_host_memory(to)) return kInvalid;
  const DeviceAccess access;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return kSuccess;
}
Status cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t size, Stream stream) {
  return move_async(stream, to, true, reinterpret_cast<std::uint64_t>(from), false, size);
}
Status cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t size, Stream stream) {
  return move_async(stream, reinterpret_cast<std::uint64_t>(to), false, from, true, size);
}
Status cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t size, Stream stream) {
  return move_async(stream, to, true, from, true, size);
}
Status cuModuleLoadData(Module* module, const void* image) {
  if (const Status status = ready(); status != kSuccess) return status;
  if (image == nullptr) return kInvalid;
  static ModuleTag made;
  ++world().modules;
  *module = &made;
  return kSuccess;
}
Status cuModuleUnload(Module) {
  if (const Status status = ready(); status != kSuccess) return status;
  if (world().modules == 0) return kInvalidHandle;
  --world().modules;
  return kSuccess;
}
Status cuModuleGetFunction(Function* function, Module, const char* name) {
  if (const Status status = ready(); status != kSuccess) return status;
  const Binder binder = find_kernel(name);
  if (!binder) return kNotFound;
  FunctionTag& made = world().functions[name];
  made = {name, binder};
  *function = &made;
  return kSuccess;
}
Status cuLaunchKernel(Function function, unsigned blocks, unsigned more_blocks, unsigned still_more, unsigned threads,
                      unsigned more_threads, unsigned yet_more, unsigned shared, Stream stream, void** arguments,
                      void** extra) {
  if (const Status status = ready(function, stream); status != kSuccess) return status;
  const bool flat = more_blocks == 1 && still_more == 1 && more_threads == 1 && yet_more == 1;
  if (!flat || blocks == 0 || threads == 0 || threads > 1024 || shared != 0 || arguments == nullptr || extra != nullptr)
    return kInvalid;
  const Settings& settings = world().settings;
  const auto gap = static_cast<double>(settings.gap);
  // All blocks of the multiplying kernel do the same, so one is enough.
  const LaunchSize size{function->name == "tidepool_multiply" ? 1U : blocks, threads, settings.tick};
  const double work = memory_time(function->name, arguments);
  return give(stream, Item{.work = [gap, work, size, kernel = function->binder(arguments),
                                    allowed = range_check(function->name, arguments)](double& now) {
                if (!allowed()) return kIllegalAddress;
                now += gap;
                try {
                  kernel(size, now);
                } catch (const std::runtime_error&) {
                  return kLaunchFailed;
                }
                now += work;
                return kSuccess;
              }});
}
Status cuStreamCreate(Stream* stream, unsigned flags) {
  if (const Status status = ready(); status != kSuccess) return status;
  if (flags > kStreamNonBlocking) return kInvalid;
  *stream = new StreamTag{.items = {}, .number = world().streams.size()};
  world().streams.push_back(*stream);
  return kSuccess;
}
/// First finishes the work of all streams.
Status cuStreamDestroy_v2(Stream stream) {
  if (const Status status = ready(stream); status != kSuccess) return status;
  if (is_captured(stream)) return kCaptureUnsupported;
  go_on_to_the_end();
  std::erase(world().streams, stream);
  delete stream;
  return kSuccess;
}
Status cuStreamQuery(Stream stream) {
  if (const Status status = ready(stream); status != kSuccess) return status;
  if (is_captured(stream)) return kCaptureUnsupported;
  const DeviceAccess access;
  for (int i = 0; i < 64 && !stream->items.empty() && go_on(); ++i) continue;
  return answer(stream->items.empty());
}
Status cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  if (const Status status = ready(stream, event); status != kSuccess) return status;
  if (flags != 0) return kInvalid;
  World& w = world();
  if (++w.waits == w.settings.lose) return kSuccess;
  if (event->latest == nullptr) return kSuccess;
  const auto forked =
      w.capture == nullptr ? decltype(w.capture->forked.end()){} : w.capture->forked.find(event->latest.get());
  if (w.capture != nullptr && forked != w.capture->forked.end()) {
    w.capture->streams.insert(stream);
    if (stream == w.capture->first) w.capture->unjoined.erase(forked->second);
  } else if (is_captured(stream)) {
    return kCaptureIsolation;  // records outside of the capture are no part of the graph
  } else if (event->captured) {
    return kInvalid;  // the capture of this record has ended
  }
  return give(stream, Item{.wait = event->latest});
}
Status cuEventCreate(Event* event, unsigned flags) {
  if (const Status status = ready(); status != kSuccess) return status;
  if ((flags & ~kEventNoTiming) != 0) return kInvalid;
  *event = new EventTag{.timed = (flags & kEventNoTiming) == 0};
  world().events.insert(*event);
  return kSuccess;
}
Status cuEventDestroy_v2(Event event) {
  if (const Status status = ready(event); status != kSuccess) return status;
  world().events.erase(event);
  delete event;
  return kSuccess;
}
Status cuEventRecord(Event event, Stream stream) { return record(event, stream, false); }
Status cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  return record(event, stream, flags == kEventRecordExternal);
}
Status cuEventQuery(Event event) {
  if (const Status status = ready(event); status != kSuccess) return status;
  if (event->captured) return kCapturedEvent;
  const DeviceAccess access;
  for (int i = 0; i < 64 && event->latest != nullptr && !event->latest->happened && go_on(); ++i) continue;
  if (event->latest != nullptr && event->latest->happened) world().host = std::max(world().host, event->latest->when);
  return answer(event->latest == nullptr || event->latest->happened);
}
Status cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  if (const Status status = ready(from, to); status != kSuccess) return status;
  if (!from->timed || !to->timed || !from->latest || !to->latest) return kInvalidHandle;
  if (from->captured || to->captured) return kCapturedEvent;
  if (!from->latest->happened || !to->latest->happened) return kErrorNotReady;
  *milliseconds = static_cast<float>((to->latest->when - from->latest->when) / 1e6);
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
