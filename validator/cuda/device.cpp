#include "validator/cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

namespace tidepool::cuda {

Gpu::Gpu(const Driver& driver, int index) : driver_{driver} {
  driver_(driver_.init, 0U);
  int count = 0;
  driver_(driver_.device_count, &count);
  if (index < 0 || index >= count)
    throw Error{0, fmt::format("there is no device {}; the driver knows {}", index, count)};
  driver_(driver_.device_get, &device_, index);
  std::array<char, 256> name{};
  driver_(driver_.device_name, name.data(), static_cast<int>(name.size() - 1), device_);
  name_ = name.data();
  int processors = 1, major = 0;
  driver_(driver_.device_attribute, &processors, kAttributeProcessors, device_);
  driver_(driver_.device_attribute, &major, kAttributeMajor, device_);
  processors_ = static_cast<unsigned>(processors);
  if (major < 8) throw Error{0, fmt::format("{} has compute capability {}.x; expected 8.0 or later", name_, major)};
  Context context = nullptr;
  driver_(driver_.context_retain, &context, device_);
  driver_(driver_.context_set, context);
  if (const Status status = driver_.module_load.status(&module_, kernel_image().data()); status != kSuccess) {
    driver_.context_release.status(device_);
    driver_.fail(status, has_kernels() ? driver_.module_load.name()
                                       : "this program was built without nvcc and has no kernels for GPUs");
  }
}

Gpu::~Gpu() {
  if (abandoned_) return;
  driver_.module_unload.status(module_);
  driver_.context_release.status(device_);
}

Function Gpu::kernel(const char* name) const {
  Function function = nullptr;
  driver_(driver_.module_function, &function, module_, name);
  return function;
}

std::pair<Bytes, Bytes> Gpu::memory() const {
  std::size_t free = 0, total = 0;
  driver_(driver_.memory_info, &free, &total);
  return {Bytes{static_cast<std::int64_t>(free)}, Bytes{static_cast<std::int64_t>(total)}};
}

std::string Gpu::description() const {
  int version = 0;
  driver_(driver_.version, &version);
  return fmt::format("{}, driver for CUDA {}.{}", name_, version / 1000, version % 1000 / 10);
}

Owned<Stream> make_stream(const Gpu& gpu) {
  Stream stream = nullptr;
  gpu.driver()(gpu.driver().stream_create, &stream, kStreamNonBlocking);
  return {gpu, gpu.driver().stream_destroy, stream};
}

Owned<Event> make_event(const Gpu& gpu, bool timed) {
  Event event = nullptr;
  gpu.driver()(gpu.driver().event_create, &event, timed ? 0U : kEventNoTiming);
  return {gpu, gpu.driver().event_destroy, event};
}

Owned<Address> allocate(const Gpu& gpu, Bytes size, const char* what) {
  const Driver& driver = gpu.driver();
  if (size <= Bytes{}) return {gpu, driver.free, Address{}};
  Address address{};
  const Status status = driver.allocate.status(&address, static_cast<std::size_t>(size.count()));
  if (status == kErrorOutOfMemory)
    driver.fail(status, fmt::format("the device has no {} for {}; {} of {} are free: {}", to_text(size), what,
                                    to_text(gpu.free_memory()), to_text(gpu.total_memory()), driver.allocate.name()));
  if (status != kSuccess) driver.fail(status, driver.allocate.name());
  return {gpu, driver.free, address};
}

Owned<void*> allocate_pinned(const Gpu& gpu, Bytes size) {
  const Driver& driver = gpu.driver();
  if (size <= Bytes{}) return {gpu, driver.host_free, nullptr};
  void* memory = nullptr;
  const Status status =
      driver.host_allocate.status(&memory, static_cast<std::size_t>(size.count()), kHostPortable | kHostDeviceMap);
  if (status == kErrorOutOfMemory)
    driver.fail(status, fmt::format("the host has no {} of pinned memory for copies: {}", to_text(size),
                                    driver.host_allocate.name()));
  if (status != kSuccess) driver.fail(status, driver.host_allocate.name());
  return {gpu, driver.host_free, memory};
}

bool wait_for(const Gpu& gpu, Event event, Nanos patience) {
  using std::chrono::nanoseconds, std::chrono::milliseconds, std::chrono::microseconds;
  constexpr nanoseconds kLongestRound = milliseconds{10};  // a longer one was that of a stopped process
  auto last = std::chrono::steady_clock::now();
  nanoseconds waited{};
  while (true) {
    const Status status = gpu.driver().event_query.status(event);
    if (status == kSuccess) return true;
    if (status != kErrorNotReady) gpu.driver().fail(status, gpu.driver().event_query.name());
    const auto now = std::chrono::steady_clock::now();
    waited += std::min<nanoseconds>(now - last, kLongestRound);
    last = now;
    if (waited >= nanoseconds{patience.count()}) return false;
    if (waited > milliseconds{10}) std::this_thread::sleep_for(microseconds{100});
  }
}

Nanos elapsed(const Gpu& gpu, Event from, Event to) {
  float milliseconds = 0;
  gpu.driver()(gpu.driver().event_elapsed, &milliseconds, from, to);
  return Nanos{std::llround(static_cast<double>(milliseconds) * 1e6)};
}

}  // namespace tidepool::cuda
