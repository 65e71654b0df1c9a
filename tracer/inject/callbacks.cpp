// The callbacks that CUPTI makes while the job calls the driver.
#include "tracer/inject/callbacks.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {

using cupti::DriverCall;

namespace {

struct Threads {
  std::mutex mutex;
  std::deque<Thread> all;  // a deque keeps the addresses of its elements when more are added
};

}  // namespace

Thread& this_thread() {
  // Never destroyed: destructors of the job may free memory and launch kernels after this library's destructors have
  // run.
  static Threads& threads = *new Threads;
  thread_local Thread* thread = nullptr;
  if (thread == nullptr) {
    const std::lock_guard lock{threads.mutex};
    thread = &threads.all.emplace_back();
  }
  return *thread;
}

std::uint32_t correlation_of(const CUpti_CallbackData& data) {
  const std::uint32_t outer = this_thread().outer_correlation;
  return outer != 0 ? outer : data.correlationId;
}

namespace {

bool succeeded(const CUpti_CallbackData& data) {
  return data.functionReturnValue != nullptr && *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS;
}

template <class Parameters>
const Parameters& as(const CUpti_CallbackData& data) {
  return *static_cast<const Parameters*>(data.functionParams);
}

}  // namespace

void Recorder::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  auto& recorder = *static_cast<Recorder*>(self);
  if (recorder.dead_) return;
  try {
    if (Thread& thread = this_thread(); thread.session != recorder.session_) {
      thread.session = recorder.session_;
      thread.outer_correlation = thread.inner_correlation = thread.depth = 0;
    }
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
      recorder.on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
    } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
      recorder.on_runtime(*static_cast<const CUpti_CallbackData*>(data));
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id < recorder.calls_.size()) {
      recorder.on_driver(recorder.calls_[id], *static_cast<const CUpti_CallbackData*>(data));
    }
  } catch (...) {  // out of memory; the job must not see it
  }
}

void Recorder::entered(Thread& thread, std::uint32_t correlation) {
  last_correlation_ = correlation;
  if (thread.depth++ == 0) ++threads_inside_;
}

bool Recorder::left(Thread& thread) {
  if (thread.depth == 0) return false;  // the call began before the recording
  if (--thread.depth != 0) return false;
  // cuptiFinalize is possible at the end of a call while no other thread is in a call.
  const bool alone = --threads_inside_ == 0;
  if (!alone || !detach_wanted_ || !detach_wanted_.exchange(false)) return false;
  cupti_.unsubscribe(subscriber_);
  cupti_.finalize();
  const std::lock_guard lock{control_mutex_};
  detached_ = true;
  control_changed_.notify_all();
  return true;
}

void Recorder::on_runtime(const CUpti_CallbackData& data) {
  Thread& thread = this_thread();
  if (data.callbackSite == CUPTI_API_ENTER) {
    entered(thread, data.correlationId);
    (thread.outer_correlation == 0 ? thread.outer_correlation : thread.inner_correlation) = data.correlationId;
    return;
  }
  if (data.correlationId == thread.outer_correlation) thread.outer_correlation = thread.inner_correlation = 0;
  if (data.correlationId == thread.inner_correlation) thread.inner_correlation = 0;
  left(thread);
}

void Recorder::on_driver(DriverCall call, const CUpti_CallbackData& data) {
  Thread& thread = this_thread();
  if (data.callbackSite == CUPTI_API_ENTER) {
    entered(thread, data.correlationId);
    thread.created_nodes.clear();
    // After the recording has ended, another thread may already have detached CUPTI.
    if (started_ && data.correlationData != nullptr) *data.correlationData = static_cast<std::uint64_t>(now());
    // The range is removed before the driver can allocate the same addresses again.
    if (call == DriverCall::kFree) memory_.remove(as<cuMemFree_v2_params>(data).dptr);
    if (call == DriverCall::kUnmap)
      memory_.remove_within(as<cuMemUnmap_params>(data).ptr, as<cuMemUnmap_params>(data).size);
    return;
  }
  if (started_ && succeeded(data)) {
    const bool timed = thread.depth != 0 && data.correlationData != nullptr;  // else it began before the recording
    on_driver_exit(call, data, timed ? static_cast<std::int64_t>(*data.correlationData) : now());
  }
  thread.created_nodes.clear();
  left(thread);
}

void Recorder::on_driver_exit(DriverCall call, const CUpti_CallbackData& data, std::int64_t begin) {
  switch (call) {
    case DriverCall::kAlloc:
    case DriverCall::kAllocPitch:
    case DriverCall::kAllocHost:
    case DriverCall::kHostRegister:
      return on_memory(call, data);
    case DriverCall::kAddressReserve:
    case DriverCall::kAddressFree:
    case DriverCall::kCreate:
    case DriverCall::kRelease:
    case DriverCall::kMap:
    case DriverCall::kUnmap:
      return on_vmm(call, data);
    case DriverCall::kTensorMapEncode:
    case DriverCall::kTensorMapReplaceAddress:
      return on_tensor_map(call, data.functionParams);
    case DriverCall::kEventRecord:
      return on_event(data, begin);
    case DriverCall::kOther:
    case DriverCall::kFree:
      return;
    default:
      break;
  }
  if (is_launch(call))
    on_launch(call, data, begin);
  else
    on_graph_call(call, data.functionParams);
}

void Recorder::on_memory(DriverCall call, const CUpti_CallbackData& data) {
  if (call == DriverCall::kAlloc) {
    const auto& p = as<cuMemAlloc_v2_params>(data);
    memory_.add(*p.dptr, p.bytesize);
  } else if (call == DriverCall::kAllocPitch) {
    const auto& p = as<cuMemAllocPitch_v2_params>(data);
    memory_.add(*p.dptr, *p.pPitch * p.Height);
  } else if (call == DriverCall::kAllocHost) {
    const auto& p = as<cuMemAllocHost_v2_params>(data);
    memory_.add(reinterpret_cast<std::uint64_t>(*p.pp), p.bytesize);
  } else {
    const auto& p = as<cuMemHostRegister_v2_params>(data);
    memory_.add(reinterpret_cast<std::uint64_t>(p.p), p.bytesize);
  }
}

void Recorder::on_vmm(DriverCall call, const CUpti_CallbackData& data) {
  raw::Vmm record;
  record.time = now();
  record.correlation = correlation_of(data);
  record.thread = thread_id();
  switch (call) {
    case DriverCall::kAddressReserve:
      record.operation = raw::VmmOperation::kReserve;
      record.address = *as<cuMemAddressReserve_params>(data).ptr;
      record.size = as<cuMemAddressReserve_params>(data).size;
      break;
    case DriverCall::kAddressFree:
      record.operation = raw::VmmOperation::kAddressFree;
      record.address = as<cuMemAddressFree_params>(data).ptr;
      record.size = as<cuMemAddressFree_params>(data).size;
      break;
    case DriverCall::kCreate: {
      const auto& p = as<cuMemCreate_params>(data);
      record.operation = raw::VmmOperation::kCreate;
      record.handle = *p.handle;
      record.size = p.size;
      if (p.prop != nullptr && p.prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        record.device = static_cast<std::uint32_t>(p.prop->location.id);
      break;
    }
    case DriverCall::kRelease:
      record.operation = raw::VmmOperation::kRelease;
      record.handle = as<cuMemRelease_params>(data).handle;
      break;
    case DriverCall::kMap: {
      const auto& p = as<cuMemMap_params>(data);
      record.operation = raw::VmmOperation::kMap;
      record.address = p.ptr;
      record.size = p.size;
      record.offset = p.offset;
      record.handle = p.handle;
      memory_.add(p.ptr, p.size);
      break;
    }
    default:
      record.operation = raw::VmmOperation::kUnmap;
      record.address = as<cuMemUnmap_params>(data).ptr;
      record.size = as<cuMemUnmap_params>(data).size;
      break;
  }
  output_.append(record);
}

void Recorder::on_tensor_map(DriverCall call, const void* parameters) {
  if (call == DriverCall::kTensorMapReplaceAddress) {
    const auto& p = *static_cast<const cuTensorMapReplaceAddress_params*>(parameters);
    memory_.add_tensor_map(p.tensorMap, reinterpret_cast<std::uint64_t>(p.globalAddress));
  } else {  // parameters of all kinds of encoding begin with the same fields
    const auto& p = *static_cast<const cuTensorMapEncodeTiled_params*>(parameters);
    memory_.add_tensor_map(p.tensorMap, reinterpret_cast<std::uint64_t>(p.globalAddress));
  }
}

void Recorder::on_event(const CUpti_CallbackData& data, std::int64_t begin) {
  const std::uint32_t correlation = correlation_of(data);
  if (!window_->contains(correlation)) return;
  raw::Api record;
  record.start = begin;
  record.end = now();
  record.name = output_.text(data.functionName == nullptr ? "cuEventRecord" : data.functionName);
  record.correlation = correlation;
  record.thread = thread_id();
  record.layer = raw::Layer::kDriver;
  output_.append(record);
}

void Recorder::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data) {
  if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
    layouts_.forget();
  } else if (!started_) {
    return;
  } else if (id == CUPTI_CBID_RESOURCE_STREAM_CREATED) {
    raw::Stream stream;
    stream.handle = reinterpret_cast<std::uint64_t>(data.resourceHandle.stream);
    if (cupti_.stream_id(data.context, data.resourceHandle.stream, 0, &stream.stream) != CUPTI_SUCCESS) return;
    stream.context = raw::kNoId;
    output_.append(stream);
  } else if (data.resourceDescriptor != nullptr) {
    on_graph_node(id, *static_cast<const CUpti_GraphData*>(data.resourceDescriptor));
  }
}

}  // namespace tidepool::inject
