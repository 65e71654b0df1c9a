// libcupti.so, the stand-in: see standin.hpp. One subscriber, activity records in buffers, and the faults that a real
// one has.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/standin/standin.hpp"

struct CUpti_Subscriber_st {};

namespace {

std::mutex mutex;
CUpti_Subscriber_st the_subscriber;
std::atomic<CUpti_CallbackFunc> callback{nullptr};
void* user_data = nullptr;
std::set<std::pair<int, CUpti_CallbackId>> enabled_callbacks;
std::set<int> enabled_kinds;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
std::uint8_t* buffer = nullptr;
std::size_t capacity = 0, used = 0, dropped = 0, records = 0;

template <std::size_t N>
CUpti_CallbackId number_of(const char* const (&names)[N], const char* name) {
  for (CUpti_CallbackId id = 1; id < N; ++id)
    if (std::strcmp(names[id], name) == 0) return id;
  return 0;
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(standin::MemoryRecord);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(standin::SynchronizationRecord);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(standin::EventRecord);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext2);
    default:
      return 0;
  }
}

/// Hands the buffer out; with the mutex held, which is let go meanwhile as the real one does.
void hand_out(std::unique_lock<std::mutex>& lock) {
  if (buffer == nullptr || used == 0) return;
  std::uint8_t* const full = buffer;
  const std::size_t size = capacity, valid = used;
  buffer = nullptr;
  used = 0;
  lock.unlock();
  complete(nullptr, 0, full, size, valid);
  lock.lock();
}

bool is_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const std::lock_guard lock{mutex};
  return enabled_callbacks.count({domain, id}) != 0;
}

void on_call(CUpti_CallbackDomain domain, const char* name, CUpti_CallbackData* data) {
  const CUpti_CallbackId id = domain == CUPTI_CB_DOMAIN_DRIVER_API ? number_of(standin::kDriverCalls, name)
                                                                   : number_of(standin::kRuntimeCalls, name);
  const CUpti_CallbackFunc function = callback;
  if (function != nullptr && is_enabled(domain, id)) function(user_data, domain, id, data);
}

void on_resource(CUpti_CallbackId id, CUpti_ResourceData* data) {
  const CUpti_CallbackFunc function = callback;
  if (function != nullptr && is_enabled(CUPTI_CB_DOMAIN_RESOURCE, id))
    function(user_data, CUPTI_CB_DOMAIN_RESOURCE, id, data);
}

void on_record(const void* record, std::size_t bytes) {
  static const unsigned drop = standin::fault_every("drop");
  CUpti_Activity activity;
  std::memcpy(&activity, record, sizeof activity);
  std::unique_lock lock{mutex};
  if (enabled_kinds.count(activity.kind) == 0 || request == nullptr) return;
  if (drop != 0 && ++records % drop == 0) {
    ++dropped;
    return;
  }
  if (buffer != nullptr && used + bytes > capacity) hand_out(lock);
  if (buffer == nullptr) {
    std::size_t most = 0;
    request(&buffer, &capacity, &most);
    used = 0;
    if (buffer == nullptr) {
      ++dropped;
      return;
    }
  }
  std::memcpy(buffer + used, record, bytes);
  used += bytes;
}

constexpr standin::Tool kTool{&on_call, &on_resource, &on_record};

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  const char* const wanted = getenv("STANDIN_CUPTI_VERSION");
  *version = wanted == nullptr ? 26 : static_cast<std::uint32_t>(std::atoi(wanted));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data) {
  if (!standin::fault("subscriber").empty()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  user_data = data;
  callback = function;
  *subscriber = &the_subscriber;
  standin_attach(&kTool);
  return CUPTI_SUCCESS;
}

struct StandinSubscriberParams {
  std::size_t size;
  const char* name;
  char* other;
  std::size_t other_size;
};
/// Under another name, since headers before CUDA 13 do not declare it and later ones do.
CUptiResult subscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data,
                         StandinSubscriberParams* params) __asm__("cuptiSubscribe_v2");
CUptiResult subscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data,
                         StandinSubscriberParams* params) {
  const std::string other = standin::fault("subscriber");
  if (!other.empty() && other != "1" && params->other != nullptr)
    std::strncpy(params->other, other.c_str(), params->other_size - 1);
  return cuptiSubscribe(subscriber, function, data);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  callback = nullptr;
  const std::lock_guard lock{mutex};
  enabled_callbacks.clear();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize() {
  standin_attach(nullptr);
  if (getenv("STANDIN_VERBOSE") != nullptr) (void)!write(2, "standin: finalized\n", 19);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  const std::lock_guard lock{mutex};
  if (enable != 0)
    enabled_callbacks.insert({domain, id});
  else
    enabled_callbacks.erase({domain, id});
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (id >= (driver ? std::size(standin::kDriverCalls) : std::size(standin::kRuntimeCalls)))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *name = driver ? standin::kDriverCalls[id] : standin::kRuntimeCalls[id];
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_STANDIN";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  timespec read{};
  clock_gettime(CLOCK_REALTIME, &read);
  *time = static_cast<std::uint64_t>(read.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(read.tv_nsec);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* id) {
  std::memcpy(id, reinterpret_cast<const void*>(stream), sizeof *id);  // the first member
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  *id = standin_graph_node_id(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (!standin::fault("privileges").empty()) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  {
    const std::lock_guard lock{mutex};
    enabled_kinds.insert(kind);
  }
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    CUpti_ActivityDevice5 device{};
    device.kind = kind;
    device.globalMemorySize = 80ULL << 30;
    device.computeCapabilityMajor = 9;
    device.name = "Stand-in";
    on_record(&device, sizeof device);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock{mutex};
  enabled_kinds.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* bytes, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = bytes;
  if (*record != nullptr) next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= bytes + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* count) {
  const std::lock_guard lock{mutex};
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  if (!standin::fault("hang-flush").empty()) pause();
  std::unique_lock lock{mutex};
  hand_out(lock);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  static std::once_flag once;
  std::call_once(once, [milliseconds] {
    std::thread{[milliseconds] {
      while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
        std::unique_lock lock{mutex};
        hand_out(lock);
      }
    }}.detach();
  });
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableAllocationSource(std::uint8_t) { return CUPTI_SUCCESS; }
}
