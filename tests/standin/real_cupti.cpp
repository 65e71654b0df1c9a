// What a real libcupti says without a GPU: the names of its calls, and the sizes of its records.
//   real_cupti LIBCUPTI     prints what differs from what the recorder takes for granted, and ends with 1 if anything does
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tracer/cupti/driver_calls.hpp"

using tidepool::cupti::DriverCall;

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("%s\n", what.c_str());
  ++failures;
}

template <class Function>
Function* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  expect(found != nullptr, std::string{"it has no "} + name);
  if (found == nullptr) std::exit(1);
  return reinterpret_cast<Function*>(found);
}

std::vector<std::string> names(decltype(cuptiGetCallbackName)* ask, CUpti_CallbackDomain domain) {
  std::vector<std::string> found;
  const char* name = nullptr;
  for (CUpti_CallbackId id = 1; ask(domain, id, &name) == CUPTI_SUCCESS && name != nullptr; ++id)
    found.emplace_back(name);
  return found;
}

/// In a buffer full of the kind's number, the next record begins behind the first one.
std::size_t record_size(decltype(cuptiActivityGetNextRecord)* next, CUpti_ActivityKind kind) {
  alignas(8) static std::uint8_t buffer[8192];
  for (std::size_t at = 0; at + sizeof kind <= sizeof buffer; at += sizeof kind)
    std::memcpy(buffer + at, &kind, sizeof kind);
  CUpti_Activity* record = nullptr;
  if (next(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  if (next(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  return static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - buffer);
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    std::printf("skipped: %s\n", argc == 2 ? dlerror() : "no libcupti is installed");
    return 0;
  }
  std::uint32_t version = 0;
  const CUptiResult told = find<decltype(cuptiGetVersion)>(library, "cuptiGetVersion")(&version);
  std::printf("version %u (answer %d)\n", version, static_cast<int>(told));

  auto* const ask = find<decltype(cuptiGetCallbackName)>(library, "cuptiGetCallbackName");
  std::set<DriverCall> known;
  for (const std::string& name : names(ask, CUPTI_CB_DOMAIN_DRIVER_API))
    known.insert(tidepool::cupti::driver_call(name));
  for (int call = 0; call <= static_cast<int>(DriverCall::kSetExecKernelNode); ++call)
    expect(known.count(static_cast<DriverCall>(call)) != 0, "no call of kind " + std::to_string(call));
  std::set<std::string> outer;
  for (const std::string& name : names(ask, CUPTI_CB_DOMAIN_RUNTIME_API))
    if (tidepool::cupti::is_outer_call(name)) outer.insert(name.substr(0, name.rfind('_')));
  for (const char* name :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch"})
    expect(outer.count(name) != 0, std::string{"no call "} + name);

  // The recorder reads the fields of 12.4, and those that later versions append; see activities.cpp.
  auto* const next = find<decltype(cuptiActivityGetNextRecord)>(library, "cuptiActivityGetNextRecord");
  const auto least = [&](CUpti_ActivityKind kind, std::size_t bytes) {
    const std::size_t size = record_size(next, kind);
    expect(size >= bytes, "records of kind " + std::to_string(kind) + " have " + std::to_string(size) +
                              " bytes; the recorder reads " + std::to_string(bytes));
  };
  least(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel9));
  least(CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy5));
  least(CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4));
  least(CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4));
  least(CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory3) + (version >= 24 ? 8 : 0));
  least(CUPTI_ACTIVITY_KIND_MEMORY_POOL, sizeof(CUpti_ActivityMemoryPool2));
  least(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization) + (version >= 26 ? 12 : 0));
  least(CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent) + (version >= 26 ? 32 : 0));
  least(CUPTI_ACTIVITY_KIND_STREAM, sizeof(CUpti_ActivityStream));
  least(CUPTI_ACTIVITY_KIND_DEVICE, sizeof(CUpti_ActivityDevice5));
  least(CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CUpti_ActivityContext2));
  least(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation));
  least(CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3));
  if (failures == 0) std::printf("passed\n");
  return failures == 0 ? 0 : 1;
}
