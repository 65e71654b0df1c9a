// The shared library that PyTorch's CUDAPluggableAllocator loads. Settings come from the environment:
//   TIDEPOOL_LAYOUT           the layout (tidepool pack --layout-out)
//   TIDEPOOL_LAYOUT_FALLBACK  size of the fallback region, 64MiB by default
//   TIDEPOOL_LAYOUT_MEMORY    device (default) or host, for tests without a GPU
//   TIDEPOOL_LAYOUT_DEVICE    the GPU of the layout, 0 by default; other GPUs get separate memory
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "traces/base/error.hpp"
#include "validator/live/allocator/device_memory.hpp"

using namespace tidepool;

namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// One allocator for the planned device. Wrong settings are reported once, and then every request gets separate memory.
/// Without a driver, or if TIDEPOOL_LAYOUT_DEVICE is no number, requests fail.
class Service {
 public:
  static Service& instance() {
    static Service* service = new Service;  // never destroyed: PyTorch frees until the process has ended
    return *service;
  }

  void* allocate(Bytes size, int device, LiveStream stream) {
    if (!allocator_) return nullptr;
    return device == device_ ? allocator_->allocate(size, stream) : allocator_->allocate_outside(size, &elsewhere_);
  }
  void free(void* memory) {
    if (allocator_) allocator_->free(memory);
  }
  void record_use(void* memory, LiveStream stream) {
    if (allocator_) allocator_->record_use(memory, stream);
  }
  const char* report() {
    report_ = allocator_ ? to_json(allocator_->report()) : "{}";
    return report_.c_str();
  }

 private:
  Service() {
    std::string problem;
    try {
      device_ = std::stoi(setting("TIDEPOOL_LAYOUT_DEVICE", "0"));
      if (setting("TIDEPOOL_LAYOUT_MEMORY", "device") == "host")
        source_ = std::make_unique<HeapMemory>();
      else
        source_ = device_memory(device_, problem);
      const Bytes fallback = parse_bytes(setting("TIDEPOOL_LAYOUT_FALLBACK", "64MiB"));
      if (source_)
        allocator_ =
            std::make_unique<PlannedAllocator>(read_layout(setting("TIDEPOOL_LAYOUT", "")), fallback, *source_);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!allocator_) std::fprintf(stderr, "tidepool: %s; expected a GPU and a layout for it\n", problem.c_str());
    if (source_ && !allocator_) allocator_ = std::make_unique<PlannedAllocator>(LayoutFile{}, Bytes{}, *source_);
  }

  int device_ = 0;
  char elsewhere_ = 0;  ///< its address stands for streams of other devices
  std::unique_ptr<MemorySource> source_;
  std::unique_ptr<PlannedAllocator> allocator_;
  std::string report_;
};

}  // namespace

#define TIDEPOOL_EXPORT extern "C" __attribute__((visibility("default")))

/// The functions that CUDAPluggableAllocator requires; streams are CUDA's handles. PyTorch makes tensors at any
/// returned address, even at 0. It passes exceptions from here to the script as a RuntimeError.
/// @throws std::runtime_error  "CUDA out of memory: ..."
TIDEPOOL_EXPORT void* tidepool_alloc(ssize_t size, int device, void* stream) {
  void* const memory = Service::instance().allocate(Bytes{size}, device, stream);
  if (memory == nullptr && size > 0)
    throw std::runtime_error{
        "CUDA out of memory: tidepool's allocator has no " + to_text(Bytes{size}) +
        " left in its layout, and the device has none outside of it: " + Service::instance().report()};
  return memory;
}

TIDEPOOL_EXPORT void tidepool_free(void* memory, ssize_t, int, void*) { Service::instance().free(memory); }

TIDEPOOL_EXPORT void tidepool_record_stream(void* memory, void* stream) {
  try {
    Service::instance().record_use(memory, stream);
  } catch (const std::exception&) {
  }
}

/// The counts of served requests, as one JSON object; valid until the next call.
TIDEPOOL_EXPORT const char* tidepool_report() { return Service::instance().report(); }
