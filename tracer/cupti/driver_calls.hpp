// The driver calls that the recorder handles, by name. Their numbers are looked up in the CUPTI of the process, so that
// a recorder built with the headers of one version understands the callbacks of another.
#pragma once

#include <cstdint>
#include <string_view>

namespace tidepool::cupti {

enum class DriverCall : std::uint8_t {
  kOther,
  // Launches.
  kLaunchKernel,
  kLaunchCooperative,
  kLaunchKernelEx,
  kGraphLaunch,
  // Allocation and release of memory. From these calls, the scan of launches knows the live memory; they are not
  // written to the file, which has CUPTI's own records of memory.
  kAlloc,
  kAllocPitch,
  kAllocHost,
  kHostRegister,
  kFree,
  // Virtual memory management, for which some versions of CUPTI have no records.
  kAddressReserve,
  kAddressFree,
  kCreate,
  kRelease,
  kMap,
  kUnmap,
  // Copies, memsets and event records.
  kCopy,
  kCopyPeer,
  kCopyBatch,
  kCopy2D,
  kCopy3D,
  kCopy3DPeer,
  kMemset8,
  kMemset16,
  kMemset32,
  kMemset2D8,
  kMemset2D16,
  kMemset2D32,
  kEventRecord,
  // Tensor maps.
  kTensorMapEncode,
  kTensorMapReplaceAddress,
  // Graphs.
  kAddKernelNode,
  kAddCopyNode,
  kAddMemsetNode,
  kAddNode,
  kAddNodeEdges,
  kSetKernelNode,
  kSetExecKernelNode,
  kSetNode,
  kSetExecNode,
};

/// The driver call that a callback names, as in "cuLaunchKernel_ptsz" or "cuMemcpyDtoDAsync_v2". Other calls, and old
/// versions with 32-bit sizes, are kOther.
DriverCall driver_call(std::string_view name);

/// Whether a call of the CUDA runtime launches work or records an event by one of the driver calls above. The record of
/// that driver call has the correlation id of the runtime call. Examples: "cudaLaunchKernel_v7000",
/// "__cudaLaunchKernel_v13000", "cudaMemcpyAsync_v3020". Only the beginning of the name counts, so some other calls
/// count too, such as cudaLaunchHostFunc.
bool is_outer_call(std::string_view runtime_name);

/// Whether a call launches work or records an event. Outside the window of iterations, such calls are ignored,
/// unless a graph captures them.
constexpr bool is_launch(DriverCall call) {
  return (call >= DriverCall::kLaunchKernel && call <= DriverCall::kGraphLaunch) ||
         (call >= DriverCall::kCopy && call <= DriverCall::kEventRecord);
}

}  // namespace tidepool::cupti
