#include "validator/live/allocator/device_memory.hpp"

#include <dlfcn.h>

namespace tidepool {
namespace {

// The part of the driver's interface that this file uses; every function returns 0 for success.
using Status = int;
using Event = void*;
constexpr unsigned kNoTiming = 2;

struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*current)(void**) = nullptr;
  Status (*retain)(void**, int) = nullptr;
  Status (*set_current)(void*) = nullptr;
  Status (*alloc)(unsigned long long*, std::size_t) = nullptr;
  Status (*free)(unsigned long long) = nullptr;
  Status (*create_event)(Event*, unsigned) = nullptr;
  Status (*record_event)(Event, LiveStream) = nullptr;
  Status (*wait_event)(LiveStream, Event, unsigned) = nullptr;
  Status (*destroy_event)(Event) = nullptr;
  Status (*synchronise)(LiveStream) = nullptr;

  /// The name of the first function that the library lacks; null if it lacks none.
  const char* load(void* library) {
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function && !missing) missing = name;
    };
    find(init, "cuInit");
    find(current, "cuCtxGetCurrent");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(set_current, "cuCtxSetCurrent");
    find(alloc, "cuMemAlloc_v2");
    find(free, "cuMemFree_v2");
    find(create_event, "cuEventCreate");
    find(record_event, "cuEventRecord");
    find(wait_event, "cuStreamWaitEvent");
    find(destroy_event, "cuEventDestroy_v2");
    find(synchronise, "cuStreamSynchronize");
    return missing;
  }
};

class DeviceMemory final : public MemorySource {
 public:
  DeviceMemory(const Driver& driver, int device) : driver_{driver}, device_{device} {}

  void* take(Bytes size) override {
    unsigned long long address = 0;
    if (!enter() || driver_.alloc(&address, static_cast<std::size_t>(size.count())) != 0) return nullptr;
    return reinterpret_cast<void*>(address);
  }

  void give(void* memory, Bytes) override {  // the driver waits for running work
    if (enter()) driver_.free(reinterpret_cast<unsigned long long>(memory));
  }

  void order(LiveStream before, LiveStream after) override {
    Event event = nullptr;
    if (!enter()) return;
    const bool made = driver_.create_event(&event, kNoTiming) == 0;
    if (!made || driver_.record_event(event, before) != 0 || driver_.wait_event(after, event, 0) != 0)
      driver_.synchronise(before);  // slower, and equally safe
    if (made) driver_.destroy_event(event);
  }

 private:
  /// Makes the context that the process shares current in a thread that has none.
  bool enter() {
    void* context = nullptr;
    if (driver_.current(&context) == 0 && context) return true;
    return driver_.retain(&context, device_) == 0 && driver_.set_current(context) == 0;
  }

  Driver driver_;
  int device_;
};

}  // namespace

std::unique_ptr<MemorySource> device_memory(int device, std::string& why) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    why = "no CUDA driver: libcuda.so.1 cannot be loaded";
    return nullptr;
  }
  Driver driver;
  if (const char* missing = driver.load(library)) {
    why = std::string{"libcuda.so.1 has no "} + missing;
    return nullptr;
  }
  if (const Status status = driver.init(0); status != 0) {
    why = "cuInit: error " + std::to_string(status);
    return nullptr;
  }
  return std::make_unique<DeviceMemory>(driver, device);
}

}  // namespace tidepool
