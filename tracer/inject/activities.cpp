// Conversion of CUPTI's activity records to raw records. Later versions of CUPTI append fields to their records. The
// fields of version 12.4 are always read; a later field is read if the version that runs has it.
#include <cstring>
#include <string_view>

#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {
namespace {

// The first versions of CUPTI that have certain fields: version 24 (CUDA 12.6) has the library that allocates; version
// 26 (CUDA 12.8) has ids and results of synchronizations, and ids and device times of event records.
constexpr std::uint32_t kHasSource = 24, kHasSyncIds = 26;

/// A copy of a record of CUPTI. CUPTI's structs are packed, so no reference can be bound to a member.
template <class Record>
Record copy_of(const CUpti_Activity& record) {
  Record copy;
  std::memcpy(&copy, &record, sizeof copy);
  return copy;
}

/// A field that a later version appended, `offset` bytes after the end of the record of 12.4.
template <class Field, class Record>
Field appended(const CUpti_Activity& record, std::size_t offset) {
  Field field{};
  std::memcpy(&field, reinterpret_cast<const char*>(&record) + sizeof(Record) + offset, sizeof field);
  return field;
}

std::int64_t time_of(std::uint64_t time) { return static_cast<std::int64_t>(time); }

raw::Kernel kernel_of(const CUpti_ActivityKernel9& from) {
  raw::Kernel to;
  to.start = time_of(from.start);
  to.end = time_of(from.end);
  to.graph_node = from.graphNodeId;
  to.device = from.deviceId;
  to.context = from.contextId;
  to.stream = from.streamId;
  to.correlation = from.correlationId;
  to.graph = from.graphId;
  const std::int32_t grid[3] = {from.gridX, from.gridY, from.gridZ}, block[3] = {from.blockX, from.blockY, from.blockZ};
  for (int i = 0; i < 3; ++i) {
    to.grid[i] = static_cast<std::uint32_t>(grid[i]);
    to.block[i] = static_cast<std::uint32_t>(block[i]);
  }
  to.static_shared = static_cast<std::uint32_t>(from.staticSharedMemory);
  to.dynamic_shared = static_cast<std::uint32_t>(from.dynamicSharedMemory);
  to.local = from.localMemoryPerThread;
  to.registers = from.registersPerThread;
  return to;
}

/// The fields that records of copies (MEMCPY) and of copies between two devices (MEMCPY2) have in common.
template <class Record>
raw::Copy copy_record(const Record& from) {
  raw::Copy to;
  to.start = time_of(from.start);
  to.end = time_of(from.end);
  to.size = from.bytes;
  to.graph_node = from.graphNodeId;
  to.device = from.deviceId;
  to.context = from.contextId;
  to.stream = from.streamId;
  to.correlation = from.correlationId;
  to.graph = from.graphId;
  to.copy = static_cast<raw::CopyKind>(from.copyKind);
  to.from_memory = static_cast<raw::MemoryKind>(from.srcKind);
  to.to_memory = static_cast<raw::MemoryKind>(from.dstKind);
  return to;
}

raw::Memset memset_of(const CUpti_ActivityMemset4& from) {
  raw::Memset to;
  to.start = time_of(from.start);
  to.end = time_of(from.end);
  to.size = from.bytes;
  to.graph_node = from.graphNodeId;
  to.device = from.deviceId;
  to.context = from.contextId;
  to.stream = from.streamId;
  to.correlation = from.correlationId;
  to.graph = from.graphId;
  to.value = from.value;
  to.memory = static_cast<raw::MemoryKind>(from.memoryKind);
  return to;
}

raw::Memory memory_of(const CUpti_ActivityMemory3& from) {
  raw::Memory to;
  to.time = time_of(from.timestamp);
  to.address = from.address;
  to.size = from.bytes;
  to.device = from.deviceId;
  to.context = from.contextId;
  to.stream = from.isAsync != 0 ? from.streamId : raw::kNoId;
  to.correlation = from.correlationId;
  to.operation = static_cast<raw::MemoryOperation>(from.memoryOperationType);
  to.memory = static_cast<raw::MemoryKind>(from.memoryKind);
  to.async = from.isAsync != 0 ? 1 : 0;
  to.pool_kind = static_cast<raw::PoolKind>(from.memoryPoolConfig.memoryPoolType);
  if (to.pool_kind != raw::PoolKind::kNone) to.pool = from.memoryPoolConfig.address;
  return to;
}

raw::MemoryPool pool_of(const CUpti_ActivityMemoryPool2& from) {
  raw::MemoryPool to;
  to.time = time_of(from.timestamp);
  to.address = from.address;
  to.size = from.size;
  to.utilized = from.utilizedSize;
  to.release_threshold = from.releaseThreshold;
  to.least_kept = from.minBytesToKeep;
  to.device = from.deviceId;
  to.correlation = from.correlationId;
  to.operation = static_cast<raw::PoolOperation>(from.memoryPoolOperationType);
  to.pool_kind = static_cast<raw::PoolKind>(from.memoryPoolType);
  return to;
}

std::string_view overhead_name(CUpti_ActivityOverheadKind kind) {
  switch (static_cast<int>(kind)) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "compiler";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "buffer flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "resource";
    case 5 << 16:
      return "lazy function loading";
    case 6 << 16:
      return "command buffer full";
    case 7 << 16:
      return "activity buffer request";
    case 8 << 16:
      return "UVM activity initialisation";
    default:
      return "other";
  }
}

std::string_view file_name(const char* path) {
  const std::string_view text = path == nullptr ? "" : path;
  return text.substr(text.rfind('/') + 1);
}

}  // namespace

void Recorder::on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  cupti::BufferPool& buffers = *instance().buffers_;
  *buffer = buffers.take();
  *size = *buffer == nullptr ? 0 : buffers.bytes();
  *most_records = 0;
}

void Recorder::on_buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t used) {
  Recorder& recorder = instance();
  CUpti_Activity* record = nullptr;
  try {
    while (recorder.cupti_.next_record(buffer, used, &record) == CUPTI_SUCCESS) recorder.on_activity(*record);
  } catch (...) {  // out of memory; the job must not see it
  }
  recorder.buffers_->give(buffer, used);
}

void Recorder::on_activity(const CUpti_Activity& record) {
  const auto append_if_wanted = [this](const auto& converted) {
    if (window_->contains(converted.correlation)) output_.append(converted);
  };
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto from = copy_of<CUpti_ActivityKernel9>(record);
      if (!window_->contains(from.correlationId)) return;
      raw::Kernel kernel = kernel_of(from);
      kernel.name = output_.text(from.name == nullptr ? "" : from.name);
      return output_.append(kernel);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return append_if_wanted(copy_record(copy_of<CUpti_ActivityMemcpy5>(record)));
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto from = copy_of<CUpti_ActivityMemcpyPtoP4>(record);
      raw::Copy copy = copy_record(from);
      copy.from_device = from.srcDeviceId;
      copy.to_device = from.dstDeviceId;
      return append_if_wanted(copy);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return append_if_wanted(memset_of(copy_of<CUpti_ActivityMemset4>(record)));
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto from = copy_of<CUpti_ActivityMemory3>(record);
      raw::Memory memory = memory_of(from);
      memory.name = output_.text(from.name == nullptr ? "" : from.name);
      if (cupti_.version >= kHasSource)
        memory.source = output_.text(file_name(appended<const char*, CUpti_ActivityMemory3>(record, 0)));
      return output_.append(memory);
    }
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return output_.append(pool_of(copy_of<CUpti_ActivityMemoryPool2>(record)));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto from = copy_of<CUpti_ActivitySynchronization>(record);
      raw::Sync sync;
      sync.start = time_of(from.start);
      sync.end = time_of(from.end);
      sync.context = from.contextId;
      sync.stream = from.streamId;
      sync.event = from.cudaEventId;
      sync.correlation = from.correlationId;
      sync.sync = static_cast<raw::SyncKind>(from.type);
      if (cupti_.version >= kHasSyncIds) {
        sync.sync_id = appended<std::uint64_t, CUpti_ActivitySynchronization>(record, 0);
        sync.result = appended<std::int32_t, CUpti_ActivitySynchronization>(record, 8);
      }
      return append_if_wanted(sync);
    }
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
      const auto from = copy_of<CUpti_ActivityCudaEvent>(record);
      raw::EventRecord event;
      event.context = from.contextId;
      event.stream = from.streamId;
      event.event = from.eventId;
      event.correlation = from.correlationId;
      if (cupti_.version >= kHasSyncIds) {
        event.device_time = time_of(appended<std::uint64_t, CUpti_ActivityCudaEvent>(record, 16));
        event.sync_id = appended<std::uint64_t, CUpti_ActivityCudaEvent>(record, 24);
      }
      return append_if_wanted(event);
    }
    case CUPTI_ACTIVITY_KIND_STREAM: {
      const auto from = copy_of<CUpti_ActivityStream>(record);
      return output_.append(raw::Stream{0, from.contextId, from.streamId, static_cast<std::int32_t>(from.priority),
                                        static_cast<std::uint32_t>(from.flag)});
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto from = copy_of<CUpti_ActivityDevice5>(record);
      raw::DeviceInfo device;
      device.memory = from.globalMemorySize;
      device.bandwidth = from.globalMemoryBandwidth * 1000;  // CUPTI reports kB/s
      device.name = output_.text(from.name == nullptr ? "" : from.name);
      device.device = from.id;
      device.multiprocessors = from.numMultiprocessors;
      device.compute = from.computeCapabilityMajor * 10 + from.computeCapabilityMinor;
      return output_.append(device);
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto from = copy_of<CUpti_ActivityContext2>(record);
      return output_.append(raw::Context{from.contextId, from.deviceId});
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto from = copy_of<CUpti_ActivityExternalCorrelation>(record);
      return append_if_wanted(
          raw::External{from.externalId, from.correlationId, static_cast<std::uint32_t>(from.externalKind)});
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto from = copy_of<CUpti_ActivityOverhead3>(record);
      raw::Overhead overhead;
      overhead.start = time_of(from.start);
      overhead.end = time_of(from.end);
      overhead.name = output_.text(overhead_name(from.overheadKind));  // no thread: CUPTI's number is not the system's
      return output_.append(overhead);
    }
    default:
      return;
  }
}

}  // namespace tidepool::inject
