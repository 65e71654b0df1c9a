// Stand-in for libcupti.so: see fake.hpp. It has one subscriber, activity records in buffers, and the faults of a
// real CUPTI.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
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

#include "tests/fake_cuda/activity_buffers.hpp"
#include "tests/fake_cuda/fake.hpp"

struct CUpti_Subscriber_st {};

using namespace fake;

namespace {

CUpti_Subscriber_st the_subscriber;
std::atomic<CUpti_CallbackFunc> callback{nullptr};
void* user_data = nullptr;
std::set<std::pair<int, CUpti_CallbackId>> enabled_callbacks;
std::set<int> enabled_kinds;
std::size_t dropped = 0, records = 0;
std::atomic<bool> subscribed{false}, finalized{false};
const auto first_thread = std::this_thread::get_id();  // the thread that loads this library

/// State of a thread in calls with callbacks. `known` and `asked` are moments, numbered from 1 in their order.
struct Inside {
  unsigned depth = 0;       // of nested calls
  std::uint64_t known = 0;  // the tool was told of the outermost call; 0: it was not, or it may know that the call ends
  std::uint64_t asked = 0;  // the tool's last callback in this thread began
};
std::uint64_t moments = 0;
std::map<std::thread::id, Inside>& inside() {
  static auto& all = *new std::map<std::thread::id, Inside>;
  return all;
}

/// Whether to refuse questions for the version and for names: some versions do so before the first subscription.
bool too_early() {
  static const bool late = !fake::fault("late-answers").empty();
  return late && !subscribed;
}

/// Whether the present callback is the one that the fault "late-callback" delays.
bool is_late() {
  static std::atomic<bool> late{!fake::fault("late-callback").empty()};
  return late.exchange(false);
}

void wait_until_finalized() {
  for (int waits = 0; waits < 10'000 && !finalized; ++waits) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

/// The status of a call: an error after cuptiFinalize, until the next subscription.
CUptiResult refused(const char* name) {
  if (!finalized) return CUPTI_SUCCESS;
  std::fprintf(stderr, "fake: %s after cuptiFinalize\n", name);
  return CUPTI_ERROR_NOT_INITIALIZED;
}

template <std::size_t N>
CUpti_CallbackId number_of(const char* const (&names)[N], const char* name) {
  for (CUpti_CallbackId id = 1; id < N; ++id)
    if (std::strcmp(names[id], name) == 0) return id;
  return 0;
}

bool is_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const std::lock_guard lock{activity_mutex};
  return enabled_callbacks.count({domain, id}) != 0;
}

void on_call(CUpti_CallbackDomain domain, const char* name, CUpti_CallbackData* data) {
  const CUpti_CallbackId id =
      domain == CUPTI_CB_DOMAIN_DRIVER_API ? number_of(fake::kDriverCalls, name) : number_of(fake::kRuntimeCalls, name);
  const CUpti_CallbackFunc function = callback;
  if (function == nullptr || !is_enabled(domain, id)) return;
  const auto self = std::this_thread::get_id();
  const bool enters = data->callbackSite == CUPTI_API_ENTER;
  {
    const std::lock_guard lock{activity_mutex};
    Inside& own = inside()[self];
    if (enters) ++own.depth;
    if (!enters && own.depth <= 1) own.known = 0;
    own.asked = ++moments;
  }
  if (enters && self != first_thread && is_late()) wait_until_finalized();
  function(user_data, domain, id, data);
  const std::lock_guard lock{activity_mutex};
  Inside& own = inside()[self];
  if (enters && own.depth == 1) own.known = ++moments;
  if (!enters && own.depth > 0) --own.depth;
}

void on_resource(CUpti_CallbackId id, CUpti_ResourceData* data) {
  const CUpti_CallbackFunc function = callback;
  if (function != nullptr && is_enabled(CUPTI_CB_DOMAIN_RESOURCE, id))
    function(user_data, CUPTI_CB_DOMAIN_RESOURCE, id, data);
}

void on_record(const void* record, std::size_t bytes) {
  static const unsigned drop = fake::fault_every("drop");
  CUpti_Activity activity;
  std::memcpy(&activity, record, sizeof activity);
  std::unique_lock lock{activity_mutex};
  if (enabled_kinds.count(activity.kind) == 0 || !has_buffer_callbacks()) return;
  if (drop != 0 && ++records % drop == 0) {
    ++dropped;
    return;
  }
  if (!add_to_buffer(activity.kind, record, bytes, lock)) ++dropped;
}

/// Number of bytes of an attribute's value; 0 if there is no such attribute.
std::size_t size_of(CUpti_ActivityAttribute attribute) {
  switch (attribute) {
    case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
    case CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED:
    case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER:
      return sizeof(std::uint8_t);
    default:
      return static_cast<unsigned>(attribute) < CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ||
                     attribute == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE ||
                     attribute == CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE
                 ? sizeof(std::size_t)
                 : 0;
  }
}

/// The status of a call that sets or reads an attribute.
/// @param larger  whether the call may give more bytes than the value has
CUptiResult refusal(CUpti_ActivityAttribute attribute, const std::size_t* size, const void* value, bool larger) {
  if (size == nullptr || value == nullptr || size_of(attribute) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  return *size == size_of(attribute) || (larger && *size > size_of(attribute))
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
}

constexpr fake::Tool kTool{&on_call, &on_resource, &on_record};

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  if (too_early()) return CUPTI_ERROR_UNKNOWN;
  *version = cupti_version();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data) {
  if (!fake::fault("subscriber").empty()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  user_data = data;
  callback = function;
  subscribed = true;
  finalized = false;
  *subscriber = &the_subscriber;
  fake_attach(&kTool);
  return CUPTI_SUCCESS;
}

struct StandinSubscriberParams {
  std::size_t size;
  const char* name;
  char* other;
  std::size_t other_size;
};
/// cuptiSubscribe_v2. It has another name here, since headers before CUDA 13 do not declare it and later headers do.
CUptiResult subscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data,
                         StandinSubscriberParams* params) __asm__("cuptiSubscribe_v2");
CUptiResult subscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data,
                         StandinSubscriberParams* params) {
  const std::string other = fake::fault("subscriber");
  if (!other.empty() && other != "1" && params->other != nullptr)
    std::strncpy(params->other, other.c_str(), params->other_size - 1);
  return cuptiSubscribe(subscriber, function, data);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  if (const CUptiResult result = refused("cuptiUnsubscribe"); result != CUPTI_SUCCESS) return result;
  callback = nullptr;
  const std::lock_guard lock{activity_mutex};
  enabled_callbacks.clear();
  return CUPTI_SUCCESS;
}

/// Aborts if this thread has been in calls but is not in exactly one now. Also aborts if another thread is in a call
/// and the recorder was told of that call before the present callback began.
CUptiResult cuptiFinalize() {
  if (const CUptiResult result = refused("cuptiFinalize"); result != CUPTI_SUCCESS) return result;
  {
    const std::lock_guard lock{activity_mutex};
    const auto present = inside().find(std::this_thread::get_id());
    const std::uint64_t asked = present == inside().end() ? moments : present->second.asked;
    for (const auto& [thread, calls] : inside()) {
      const bool own = thread == std::this_thread::get_id();
      if (own ? calls.depth == 1 : calls.known == 0 || calls.known > asked) continue;
      std::fprintf(stderr, "fake: cuptiFinalize while %s\n", own ? "in a nested call" : "another thread is in a call");
      std::abort();
    }
    inside().clear();
  }
  finalized = true;
  fake_attach(nullptr);
  if (getenv("FAKE_VERBOSE") != nullptr) (void)!write(2, "fake: finalized\n", 16);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (const CUptiResult result = refused("cuptiEnableCallback"); result != CUPTI_SUCCESS) return result;
  const std::lock_guard lock{activity_mutex};
  if (enable != 0)
    enabled_callbacks.insert({domain, id});
  else
    enabled_callbacks.erase({domain, id});
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  if (too_early()) return CUPTI_ERROR_UNKNOWN;
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (id >= (driver ? std::size(fake::kDriverCalls) : std::size(fake::kRuntimeCalls)))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *name = driver ? fake::kDriverCalls[id] : fake::kRuntimeCalls[id];
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_FAKE";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  if (const CUptiResult result = refused("cuptiGetTimestamp"); result != CUPTI_SUCCESS) return result;
  *time = now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* id) {
  return fake_stream_id(stream, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  return fake_graph_node_id(node, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  if (const CUptiResult result = refused("cuptiActivityRegisterCallbacks"); result != CUPTI_SUCCESS) return result;
  set_buffer_callbacks(requested, completed);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (const CUptiResult result = refused("cuptiActivityEnable"); result != CUPTI_SUCCESS) return result;
  if (!fake::fault("privileges").empty()) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  {
    const std::lock_guard lock{activity_mutex};
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
  const std::lock_guard lock{activity_mutex};
  enabled_kinds.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* bytes, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = bytes;
  if (*record != nullptr) {
    const std::size_t size = record_size((*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    next = reinterpret_cast<std::uint8_t*>(*record) + size;
  }
  if (next >= bytes + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* count) {
  if (const CUptiResult result = refused("cuptiActivityGetNumDroppedRecords"); result != CUPTI_SUCCESS) return result;
  const std::lock_guard lock{activity_mutex};
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

/// A buffer with a record of running work stays, unless the flush is forced; then that record has no times.
CUptiResult cuptiActivityFlushAll(std::uint32_t flags) {
  if (const CUptiResult result = refused("cuptiActivityFlushAll"); result != CUPTI_SUCCESS) return result;
  if (!fake::fault("hang-flush").empty()) pause();
  CUpti_ActivityOverhead3 overhead{};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.processId = static_cast<std::uint32_t>(getpid());
  overhead.objectId.pt.threadId = static_cast<std::uint32_t>(pthread_self());  // not the thread id of the kernel
  cuptiGetTimestamp(&overhead.start);
  overhead.end = overhead.start + 1000;
  on_record(&overhead, sizeof overhead);
  hand_out_all((flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  static std::once_flag once;
  std::call_once(once, [milliseconds] {
    std::thread{[milliseconds] {
      while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
        if (!fake::fault("hang-flush").empty()) pause();
        hand_out_all(false);
      }
    }}.detach();
  });
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (const CUptiResult result = refused("cuptiActivitySetAttribute"); result != CUPTI_SUCCESS) return result;
  return refusal(attribute, size, value, false);
}
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (const CUptiResult result = refused("cuptiActivityGetAttribute"); result != CUPTI_SUCCESS) return result;
  if (const CUptiResult result = refusal(attribute, size, value, true); result != CUPTI_SUCCESS) return result;
  std::memset(value, 1, *size = size_of(attribute));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableAllocationSource(std::uint8_t) { return CUPTI_SUCCESS; }
}
