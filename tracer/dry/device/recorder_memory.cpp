// The part of the recorder that writes what is allocated and freed: by the device, and by PyTorch for its tensors.
#include <mutex>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/recorder.hpp"

namespace tidepool::dry {

void Recorder::memory_record(raw::MemoryOperation operation, std::uint64_t address, std::uint64_t bytes) {
  if (writer() == nullptr) return;
  raw::Memory record;
  record.time = now();
  record.address = address;
  record.size = bytes;
  record.device = device_.value_or(0);
  record.context = kContext;
  record.thread = thread_id();
  record.operation = operation;
  record.memory = raw::MemoryKind::kDevice;
  writer_.append(record);
}

void Recorder::allocated(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  buffers_.add(address, bytes);
  memory_record(raw::MemoryOperation::kAlloc, address, bytes);
}

void Recorder::freed(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  buffers_.remove_within(address, bytes);
  allocator_.segment_ends(address);
  memory_record(raw::MemoryOperation::kFree, address, bytes);
}

void Recorder::mapped(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  buffers_.add(address, bytes);
  if (writer() == nullptr) return;
  writer_.append(
      raw::Vmm{now(), address, bytes, 0, 0, device_.value_or(0), 0, thread_id(), raw::VmmOperation::kMap, {}});
}

void Recorder::unmapped(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  buffers_.remove_within(address, bytes);
  for_each_segment(address, bytes, [&](const DeviceRange& pages) { allocator_.segment_ends(pages.address); });
  if (writer() == nullptr) return;
  writer_.append(
      raw::Vmm{now(), address, bytes, 0, 0, device_.value_or(0), 0, thread_id(), raw::VmmOperation::kUnmap, {}});
}

template <class Do>
void Recorder::for_each_segment(std::uint64_t address, std::uint64_t bytes, Do what) {
  for (std::uint64_t at = address; at < address + bytes;) {
    const auto segment = DryDevice::get().memory().find(at);
    if (!segment) return;
    what(*segment);
    at = segment->address + segment->bytes;
  }
}

void Recorder::tensor_record(raw::Action action, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream) {
  if (writer() == nullptr) return;
  raw::FrameworkMemory record;
  record.stream = stream;
  record.time = now();
  record.address = address;
  record.size = bytes;
  record.device = device_.value_or(0);
  record.thread = thread_id();
  record.action = action;
  writer_.append(record);
}

void Recorder::tensor_allocated(std::uint64_t address, std::uint64_t bytes, const Stream& stream) {
  const std::lock_guard lock{mutex_};
  buffers_.add(address, bytes);  // removes the segment around the tensor: only tensors are buffers now
  const bool captured = stream.capture != nullptr;
  for_each_segment(address, bytes, [&](const DeviceRange& segment) {
    allocator_.tensor_begins(segment.address, segment.bytes, captured);
  });
  if (writer() == nullptr) return;
  if (captured) append_info("captured_memory", "1");
  introduce(stream);
  tensor_record(raw::Action::kAlloc, address, bytes, handle_of(stream));
}

void Recorder::tensor_freed(std::uint64_t address) {
  const std::lock_guard lock{mutex_};
  const auto range = buffers_.remove(address);
  const std::uint64_t bytes = range ? range->end - range->begin : 0;
  for_each_segment(address, bytes, [&](const DeviceRange& segment) { allocator_.tensor_ends(segment.address); });
  tensor_record(raw::Action::kFreeCompleted, address, bytes, 0);
}

}  // namespace tidepool::dry
