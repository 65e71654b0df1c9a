// Checks of a real libcupti without a GPU: the names of its calls, the sizes of its records, and where it finds the
// records in buffers of the fake.
//   real_cupti version LIBCUPTI [LIBCUDA]           prints the version
//   real_cupti check LIBCUPTI [LIBCUDA]             prints differences from the recorder's assumptions
//   real_cupti walk LIBCUPTI LIBCUDA|"" BUFFERS     the same for the buffers that the fake kept (FAKE_BUFFERS)
// Ends with 1 if anything differs, and with 77 and the reason if the library does not work here.
#include <cupti.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tracer/cupti/driver_calls.hpp"
#include "tracer/inject/library.hpp"

using tidepool::cupti::DriverCall;
using tidepool::inject::CuptiLibrary;

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("%s\n", what.c_str());
  ++failures;
}

[[noreturn]] void give_up(const std::string& reason) {
  std::printf("%s\n", reason.c_str());
  std::exit(77);
}

/// Loads the library. A child tries first: some versions do not work without NVIDIA's driver, and some end the process.
CuptiLibrary load(const char* path, const char* driver) {
  if (driver != nullptr && *driver != '\0' && dlopen(driver, RTLD_NOW | RTLD_GLOBAL) == nullptr) give_up(dlerror());
  const pid_t child = fork();
  if (child == 0) {
    CuptiLibrary cupti;
    _exit(cupti.load(path).empty() && cupti.version != 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    give_up("cuptiGetVersion ends the process by signal " + std::to_string(WTERMSIG(status)) + " without a driver");
  CuptiLibrary cupti;
  if (const std::string problem = cupti.load(path); !problem.empty()) give_up(problem);
  std::uint32_t version = 0;
  if (cupti.version == 0)
    give_up("cuptiGetVersion answers " + std::to_string(cupti.get_version(&version)) + " without a driver");
  return cupti;
}

std::vector<std::string> names(decltype(&cuptiGetCallbackName) ask, CUpti_CallbackDomain domain) {
  std::vector<std::string> found;
  const char* name = nullptr;
  for (CUpti_CallbackId id = 1; ask(domain, id, &name) == CUPTI_SUCCESS && name != nullptr; ++id)
    found.emplace_back(name);
  return found;
}

/// Bytes of a record of a kind; 0 if CUPTI does not know it. Every word of the buffer is the kind's number, so the next
/// record is found wherever the first one ends.
std::size_t record_size(decltype(&cuptiActivityGetNextRecord) next, CUpti_ActivityKind kind) {
  alignas(8) static std::uint8_t buffer[8192];
  for (std::size_t at = 0; at + sizeof kind <= sizeof buffer; at += sizeof kind)
    std::memcpy(buffer + at, &kind, sizeof kind);
  CUpti_Activity* record = nullptr;
  if (next(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  if (next(buffer, sizeof buffer, &record) != CUPTI_SUCCESS) return 0;
  return static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - buffer);
}

void check(const CuptiLibrary& cupti) {
  std::set<DriverCall> known;
  for (const std::string& name : names(cupti.callback_name, CUPTI_CB_DOMAIN_DRIVER_API))
    known.insert(tidepool::cupti::driver_call(name));
  for (int call = 0; call <= static_cast<int>(DriverCall::kSetExecKernelNode); ++call) {
    if (static_cast<DriverCall>(call) == DriverCall::kCopyBatch && cupti.version < 26) continue;  // of CUDA 12.8
    expect(known.count(static_cast<DriverCall>(call)) != 0, "no call of kind " + std::to_string(call));
  }
  std::set<std::string> outer;
  for (const std::string& name : names(cupti.callback_name, CUPTI_CB_DOMAIN_RUNTIME_API))
    if (tidepool::cupti::is_outer_call(name)) outer.insert(name.substr(0, name.rfind('_')));
  for (const char* name :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch"})
    expect(outer.count(name) != 0, std::string{"no call "} + name);

  // The recorder reads the fields of 12.4, and fields that later versions append; see activities.cpp.
  const std::uint32_t version = cupti.version;
  const auto least = [&](CUpti_ActivityKind kind, std::size_t bytes) {
    const std::size_t size = record_size(cupti.next_record, kind);
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
}

void walk(const CuptiLibrary& cupti, const char* path) {
  std::ifstream file{path, std::ios::binary};
  std::size_t found = 0;
  std::uint64_t counts[2];
  while (file.read(reinterpret_cast<char*>(counts), sizeof counts)) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> records(counts[0]);  // kind and place
    std::vector<std::uint64_t> words((counts[1] + 7) / 8);
    file.read(reinterpret_cast<char*>(records.data()),
              static_cast<std::streamsize>(records.size() * sizeof(records[0])));
    file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(counts[1]));
    auto* const bytes = reinterpret_cast<std::uint8_t*>(words.data());
    CUpti_Activity* record = nullptr;
    for (const auto& [kind, place] : records) {
      expect(cupti.next_record(bytes, counts[1], &record) == CUPTI_SUCCESS, "a record of the buffer is not found");
      const auto at = reinterpret_cast<std::uint8_t*>(record) - bytes;
      expect(at == place && record->kind == static_cast<CUpti_ActivityKind>(kind),
             "a record of kind " + std::to_string(kind) + " at " + std::to_string(place) + " is found at " +
                 std::to_string(at) + " as one of kind " + std::to_string(record->kind));
      if (failures != 0) return;
      ++found;
    }
    expect(cupti.next_record(bytes, counts[1], &record) == CUPTI_ERROR_MAX_LIMIT_REACHED, "a buffer has no end");
  }
  expect(found != 0, "there are no records");
  std::printf("%zu records\n", found);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc < 3 ? "" : argv[1];
  if ((what != "version" && what != "check" && what != "walk") || (what == "walk" && argc != 5)) {
    std::printf("expected the arguments that the head of real_cupti.cpp lists\n");
    return 2;
  }
  const CuptiLibrary cupti = load(argv[2], argc < 4 ? nullptr : argv[3]);
  if (what == "version") std::printf("%u\n", cupti.version);
  if (what == "check") check(cupti);
  if (what == "walk") walk(cupti, argv[4]);
  return failures == 0 ? 0 : 1;
}
