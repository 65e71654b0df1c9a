// libcupti.so, the stand-in: see standin.hpp. One subscriber, activity records in buffers, and the faults of a real
// CUPTI.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
std::size_t dropped = 0, records = 0;
std::atomic<bool> subscribed{false}, finalized{false};

/// Each thread fills a buffer of its own.
struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t capacity = 0, used = 0;
};
std::map<std::thread::id, Buffer>& buffers() {
  static auto& all = *new std::map<std::thread::id, Buffer>;
  return all;
}

/// Threads in calls with callbacks, how deep, and since when.
struct Inside {
  unsigned depth = 0;
  std::chrono::steady_clock::time_point since;
};
std::map<std::thread::id, Inside>& inside() {
  static auto& all = *new std::map<std::thread::id, Inside>;
  return all;
}

/// Some versions answer so to everything before they are used.
bool too_early() {
  static const bool late = !standin::fault("late-answers").empty();
  return late && !subscribed;
}

/// CUPTI may be used again only after another subscription.
CUptiResult refused(const char* name) {
  if (!finalized) return CUPTI_SUCCESS;
  std::fprintf(stderr, "standin: %s after cuptiFinalize\n", name);
  return CUPTI_ERROR_NOT_INITIALIZED;
}

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
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    default:
      return 0;
  }
}

/// Hands a buffer out; with the mutex held, which is let go meanwhile as the real one does.
void hand_out(std::unique_lock<std::mutex>& lock, Buffer& buffer) {
  if (buffer.bytes == nullptr || buffer.used == 0) return;
  const Buffer full = std::exchange(buffer, {});
  lock.unlock();
  complete(nullptr, 0, full.bytes, full.capacity, full.used);
  lock.lock();
}

/// Hands out all buffers, that of the thread with the largest id first.
void hand_out_all() {
  std::unique_lock lock{mutex};
  std::vector<std::thread::id> threads;
  for (const auto& [thread, buffer] : buffers()) threads.push_back(thread);
  for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread) hand_out(lock, buffers()[*thread]);
}

bool is_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const std::lock_guard lock{mutex};
  return enabled_callbacks.count({domain, id}) != 0;
}

void on_call(CUpti_CallbackDomain domain, const char* name, CUpti_CallbackData* data) {
  const CUpti_CallbackId id = domain == CUPTI_CB_DOMAIN_DRIVER_API ? number_of(standin::kDriverCalls, name)
                                                                   : number_of(standin::kRuntimeCalls, name);
  const CUpti_CallbackFunc function = callback;
  if (function == nullptr || !is_enabled(domain, id)) return;
  const auto self = std::this_thread::get_id();
  if (data->callbackSite == CUPTI_API_ENTER) {
    const std::lock_guard lock{mutex};
    if (inside()[self].depth++ == 0) inside()[self].since = std::chrono::steady_clock::now();
  }
  function(user_data, domain, id, data);
  if (data->callbackSite == CUPTI_API_EXIT) {
    const std::lock_guard lock{mutex};
    if (inside()[self].depth > 0) --inside()[self].depth;
  }
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
  Buffer& buffer = buffers()[std::this_thread::get_id()];
  if (buffer.bytes != nullptr && buffer.used + bytes > buffer.capacity) hand_out(lock, buffer);
  if (buffer.bytes == nullptr) {
    std::size_t most = 0;
    request(&buffer.bytes, &buffer.capacity, &most);
    buffer.used = 0;
    if (buffer.bytes == nullptr) {
      ++dropped;
      return;
    }
  }
  std::memcpy(buffer.bytes + buffer.used, record, bytes);
  buffer.used += bytes;
}

/// The number of bytes of an attribute's value.
std::size_t size_of(CUpti_ActivityAttribute attribute) {
  return attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ||
                 attribute == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED
             ? sizeof(std::uint8_t)
             : sizeof(std::size_t);
}

constexpr standin::Tool kTool{&on_call, &on_resource, &on_record};

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  if (too_early()) return CUPTI_ERROR_UNKNOWN;
  const char* const wanted = getenv("STANDIN_CUPTI_VERSION");
  *version = wanted == nullptr ? 26 : static_cast<std::uint32_t>(std::atoi(wanted));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data) {
  if (!standin::fault("subscriber").empty()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  user_data = data;
  callback = function;
  subscribed = true;
  finalized = false;
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
  if (const CUptiResult result = refused("cuptiUnsubscribe"); result != CUPTI_SUCCESS) return result;
  callback = nullptr;
  const std::lock_guard lock{mutex};
  enabled_callbacks.clear();
  return CUPTI_SUCCESS;
}

/// At the end of a call, when no thread is in another one. A call that has just begun may not have been seen.
CUptiResult cuptiFinalize() {
  if (const CUptiResult result = refused("cuptiFinalize"); result != CUPTI_SUCCESS) return result;
  {
    const std::lock_guard lock{mutex};
    const auto now = std::chrono::steady_clock::now();
    for (const auto& [thread, calls] : inside()) {
      const bool own = thread == std::this_thread::get_id();
      if (own ? calls.depth == 1 : calls.depth == 0 || now - calls.since < std::chrono::milliseconds{10}) continue;
      std::fprintf(stderr, "standin: cuptiFinalize while %s\n",
                   own ? "in a nested call" : "another thread is in a call");
      std::abort();
    }
    inside().clear();
  }
  finalized = true;
  standin_attach(nullptr);
  if (getenv("STANDIN_VERBOSE") != nullptr) (void)!write(2, "standin: finalized\n", 19);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (const CUptiResult result = refused("cuptiEnableCallback"); result != CUPTI_SUCCESS) return result;
  const std::lock_guard lock{mutex};
  if (enable != 0)
    enabled_callbacks.insert({domain, id});
  else
    enabled_callbacks.erase({domain, id});
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  if (too_early()) return CUPTI_ERROR_UNKNOWN;
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
  if (const CUptiResult result = refused("cuptiGetTimestamp"); result != CUPTI_SUCCESS) return result;
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
  if (const CUptiResult result = refused("cuptiActivityRegisterCallbacks"); result != CUPTI_SUCCESS) return result;
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (const CUptiResult result = refused("cuptiActivityEnable"); result != CUPTI_SUCCESS) return result;
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
  if (const CUptiResult result = refused("cuptiActivityDisable"); result != CUPTI_SUCCESS) return result;
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
  if (const CUptiResult result = refused("cuptiActivityGetNumDroppedRecords"); result != CUPTI_SUCCESS) return result;
  const std::lock_guard lock{mutex};
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  if (const CUptiResult result = refused("cuptiActivityFlushAll"); result != CUPTI_SUCCESS) return result;
  if (!standin::fault("hang-flush").empty()) pause();
  CUpti_ActivityOverhead3 overhead{};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.processId = static_cast<std::uint32_t>(getpid());
  overhead.objectId.pt.threadId = static_cast<std::uint32_t>(pthread_self());  // not what the kernel calls the thread
  cuptiGetTimestamp(&overhead.start);
  overhead.end = overhead.start + 1000;
  on_record(&overhead, sizeof overhead);
  hand_out_all();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  static std::once_flag once;
  std::call_once(once, [milliseconds] {
    std::thread{[milliseconds] {
      while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
        hand_out_all();
      }
    }}.detach();
  });
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (size == nullptr || value == nullptr || *size != size_of(attribute))
    return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (size == nullptr || value == nullptr || *size < size_of(attribute))
    return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  std::memset(value, 1, size_of(attribute));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableAllocationSource(std::uint8_t) { return CUPTI_SUCCESS; }
}
