// NCCL's entry points about communicators, memory and errors.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "tracer/cupti/options.hpp"
#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/nccl.hpp"

using namespace tidepool::dry;
using namespace tidepool::dry::nccl;

namespace {

/// The folder through which the ranks of a job exchange messages; empty if TIDEPOOL_RAW is not set.
std::string meeting() {
  const char* const folder = std::getenv(tidepool::cupti::variable::kFolder);
  return folder == nullptr || *folder == 0 ? "" : std::string{folder} + "/ranks";
}

Result join(Handle** made, std::uint64_t id, int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return fail(kInvalidArgument, "a rank that the communicator does not have");
  const std::string folder = meeting();
  if (folder.empty()) return fail(kSystemError, "TIDEPOOL_RAW is not set: there is no folder in which ranks can meet");
  try {
    const auto own = static_cast<std::uint32_t>(rank), all = static_cast<std::uint32_t>(ranks);
    *made = new Handle{std::make_shared<Communicator>(folder, id, own, all)};
    DryDevice::get().recorder().joined(id, own, all);
    return nccl::kSuccess;
  } catch (const std::exception& error) {
    return fail(kSystemError, error.what());
  }
}

Result join(Handle** made, const Communicator::Part& part) {
  return join(made, part.id, static_cast<int>(part.rank), static_cast<int>(part.ranks));
}

Result unanswered(const char* what) {
  not_answered(what);
  return fail(kInvalidUsage, "not answered by tidepool's dry run");
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result ncclGetVersion(int* version) {
  *version = 23007;  // the version whose header these entry points follow: 2.30.7
  return nccl::kSuccess;
}
Result ncclGetUniqueId(UniqueId* id) {
  *id = new_unique_id();
  return nccl::kSuccess;
}
Result ncclCommGetUniqueId(Handle*, UniqueId* id) { return ncclGetUniqueId(id); }

Result ncclCommInitRank(Handle** made, int ranks, UniqueId id, int rank) {
  return join(made, id.number(), rank, ranks);
}
Result ncclCommInitRankConfig(Handle** made, int ranks, UniqueId id, int rank, const void*) {
  return join(made, id.number(), rank, ranks);
}
Result ncclCommInitRankScalable(Handle** made, int ranks, int rank, int, const UniqueId* ids, const void*) {
  return join(made, ids[0].number(), rank, ranks);
}
/// Refused, because it makes one process use several devices.
Result ncclCommInitAll(Handle**, int, const int*) { return unanswered("ncclCommInitAll"); }

Result ncclCommSplit(Handle* handle, int colour, int key, Handle** made, const void*) {
  *made = nullptr;
  try {
    const auto part = handle->communicator->split(colour, key);
    return part ? join(made, *part) : nccl::kSuccess;
  } catch (const std::exception& error) {
    return fail(kRemoteError, error.what());
  }
}
Result ncclCommShrink(Handle* handle, const int* excluded, int count, Handle** made, const void*, int) {
  return join(made, handle->communicator->without({excluded, static_cast<std::size_t>(count)}));
}
Result ncclCommGrow(Handle*, int, const UniqueId*, int, Handle**, const void*) { return unanswered("ncclCommGrow"); }

Result ncclCommDestroy(Handle* handle) {
  delete handle;
  return nccl::kSuccess;
}
Result ncclCommAbort(Handle* handle) { return ncclCommDestroy(handle); }
Result ncclCommFinalize(Handle*) { return nccl::kSuccess; }
Result ncclCommRevoke(Handle*, int) { return nccl::kSuccess; }
Result ncclCommSuspend(Handle*, int) { return unanswered("ncclCommSuspend"); }
Result ncclCommResume(Handle*) { return unanswered("ncclCommResume"); }
Result ncclCommMemStats(Handle*, int, std::uint64_t*) { return unanswered("ncclCommMemStats"); }

Result ncclCommCount(const Handle* handle, int* count) {
  *count = static_cast<int>(handle->communicator->ranks());
  return nccl::kSuccess;
}
Result ncclCommUserRank(const Handle* handle, int* rank) {
  *rank = static_cast<int>(handle->communicator->rank());
  return nccl::kSuccess;
}
Result ncclCommCuDevice(const Handle*, int* device) {
  *device = DryDevice::get().recorder().device();
  return nccl::kSuccess;
}

/// Always success: a rank that cannot go on ends its process.
Result ncclCommGetAsyncError(Handle*, Result* error) {
  *error = nccl::kSuccess;
  return nccl::kSuccess;
}
const char* ncclGetLastError(const Handle*) { return tidepool::dry::nccl::last_error(); }
const char* ncclGetErrorString(Result result) {
  static constexpr std::array<const char*, 8> kTexts{
      "no error",         "unhandled cuda error", "unhandled system error", "internal error",
      "invalid argument", "invalid usage",        "remote process exited",  "NCCL operation in progress"};
  const auto number = static_cast<std::size_t>(result);
  return number < kTexts.size() ? kTexts[number] : "unknown result code";
}

int cudaMalloc(void** pointer, std::size_t bytes);
int cudaFree(void* pointer);
Result ncclMemAlloc(void** pointer, std::size_t bytes) {
  return cudaMalloc(pointer, bytes) == 0 ? nccl::kSuccess : fail(kSystemError, "out of memory");
}
Result ncclMemFree(void* pointer) {
  return cudaFree(pointer) == 0 ? nccl::kSuccess : fail(kInvalidArgument, "no such memory");
}

Result ncclCommRegister(Handle*, void* buffer, std::size_t, void** registered) {
  *registered = buffer;
  return nccl::kSuccess;
}
Result ncclCommDeregister(Handle*, void*) { return nccl::kSuccess; }
Result ncclCommWindowRegister(Handle*, void*, std::size_t, void**, int) { return unanswered("ncclCommWindowRegister"); }
Result ncclCommWindowDeregister(Handle*, void*) { return unanswered("ncclCommWindowDeregister"); }

Result ncclGroupStart() { return begin_group(); }
Result ncclGroupEnd() { return end_group(); }
Result ncclGroupSimulateEnd(void*) { return unanswered("ncclGroupSimulateEnd"); }

Result ncclRedOpCreatePreMulSum(int* number, const void* factor, int type, int, Handle*) {
  if (!element_bytes(type)) return fail(kInvalidArgument, "an element type that NCCL does not have");
  *number = add_operator({Reduction::kSum, number_of(factor, static_cast<Element>(type))});
  return nccl::kSuccess;
}
Result ncclRedOpDestroy(int, Handle*) { return nccl::kSuccess; }

}  // extern "C"
#pragma GCC visibility pop
