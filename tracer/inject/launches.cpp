// The memory that launches, copies and memsets use.
#include <cstring>

#include "tracer/cupti/raw_use.hpp"
#include "tracer/inject/callbacks.hpp"
#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {

using cupti::DriverCall;

namespace {

constexpr std::size_t kMostUses = 4096;  // of one kernel launch; a launch with more has the flag kUsesIncomplete

struct Packed {
  const void* bytes = nullptr;
  std::size_t size = 0;
};

/// The parameter buffer among the options of a launch: pairs of a name and a value.
Packed packed_parameters(void* const* extra) {
  Packed packed;
  for (int i = 0; extra != nullptr && extra[i] != CU_LAUNCH_PARAM_END && i < 16; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) packed.bytes = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) packed.size = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  return packed;
}

CUfunction function_of(DriverCall call, const void* parameters) {
  switch (call) {
    case DriverCall::kLaunchKernel:
      return static_cast<const cuLaunchKernel_params*>(parameters)->f;
    case DriverCall::kLaunchCooperative:
      return static_cast<const cuLaunchCooperativeKernel_params*>(parameters)->f;
    case DriverCall::kLaunchKernelEx:
      return static_cast<const cuLaunchKernelEx_params*>(parameters)->f;
    default:
      return nullptr;
  }
}

}  // namespace

bool Recorder::known(std::uint64_t address) {
  if (memory_.holds(address)) return true;
  if (!options_.resolve) return false;
  const KnownMemory::Answer answer = memory_.resolve(driver_, address);
  if (answer.first) {
    raw::Memory record;
    record.time = now();
    record.address = answer.range.begin;
    record.size = answer.range.end - answer.range.begin;
    record.thread = thread_id();
    record.device = answer.device;
    if (answer.type == CU_MEMORYTYPE_DEVICE) record.memory = raw::MemoryKind::kDevice;
    if (answer.type == CU_MEMORYTYPE_HOST) record.memory = raw::MemoryKind::kPinned;
    record.operation = raw::MemoryOperation::kExisting;
    output_.append(record);
  }
  return answer.found;
}

void Recorder::scan_kernel(CUfunction function, std::uint32_t blocks, void* const* values, void* const* extra,
                           Uses& found) {
  const std::shared_ptr<const KernelInfo> kernel = layouts_.of(driver_, function);
  found.function = reinterpret_cast<std::uint64_t>(function);
  const Packed packed = values == nullptr ? packed_parameters(extra) : Packed{};
  if (!kernel->known || (values == nullptr && packed.bytes == nullptr && !kernel->layout.empty())) {
    found.flags |= raw::kNotScanned;
    return;
  }
  cupti::ParameterScan& scan = this_thread().scan;
  memory_.scan(scan, kernel->layout, values, packed.bytes, packed.size);
  std::vector<cupti::Role> roles(scan.found().size(), cupti::Role::kUnknown);
  if (kernel->torch && values != nullptr) roles = kernel->torch->roles(scan.found(), values, blocks);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const cupti::FoundPointer& pointer = scan.found()[i];
    if (roles[i] == cupti::Role::kNone) continue;
    if (!pointer.live && !known(pointer.address)) {
      if (pointer.place == cupti::PointerPlace::kParameter) ++found.unknown_pointers;
      continue;
    }
    if (found.uses.size() == kMostUses) {
      found.flags |= raw::kUsesIncomplete;
      return;
    }
    found.uses.push_back(cupti::use_of(pointer, roles[i]));
  }
}

void Recorder::collect(DriverCall call, const void* parameters, Uses& found) {
  switch (call) {
    case DriverCall::kLaunchKernel: {
      const auto& p = *static_cast<const cuLaunchKernel_params*>(parameters);
      return scan_kernel(p.f, p.gridDimX, p.kernelParams, p.extra, found);
    }
    case DriverCall::kLaunchCooperative: {
      const auto& p = *static_cast<const cuLaunchCooperativeKernel_params*>(parameters);
      return scan_kernel(p.f, p.gridDimX, p.kernelParams, nullptr, found);
    }
    case DriverCall::kLaunchKernelEx: {
      const auto& p = *static_cast<const cuLaunchKernelEx_params*>(parameters);
      return scan_kernel(p.f, p.config->gridDimX, p.kernelParams, p.extra, found);
    }
    default:
      append_copy(call, parameters, found.uses);
      std::erase_if(found.uses, [this](const raw::BufferUse& use) { return !known(use.address); });
  }
}

void Recorder::on_launch(DriverCall call, const CUpti_CallbackData& data, std::int64_t begin) {
  Thread& thread = this_thread();
  const std::uint32_t correlation = correlation_of(data);
  const CUfunction function = function_of(call, data.functionParams);
  if (function != nullptr && !options_.iteration_kernel.empty() && thread.created_nodes.empty()) {
    const std::shared_ptr<const KernelInfo> kernel = layouts_.of(driver_, function);
    if (kernel->begins_iteration && !options_.torch) iteration(kernel->name, correlation - 1);
  }
  const bool captured = !thread.created_nodes.empty();
  if (!captured && !window_->contains(correlation)) return;
  Uses found;
  collect(call, data.functionParams, found);
  if (captured) {
    for (CUgraphNode node : thread.created_nodes) set_node(node, found);
    return;
  }
  raw::Launch launch;
  launch.start = begin;
  launch.end = now();
  launch.function = found.function;
  launch.correlation = correlation;
  if (thread.outer_correlation != 0) {
    launch.inner_correlation = thread.inner_correlation;
    launch.driver_correlation = data.correlationId;
  }
  launch.context = data.contextUid;
  launch.thread = thread_id();
  launch.unknown_pointers = found.unknown_pointers;
  launch.flags = found.flags;
  output_.append(launch, found.uses);
}

}  // namespace tidepool::inject
