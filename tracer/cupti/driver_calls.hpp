// The driver calls that the recorder looks at, by name: their numbers are looked up in the CUPTI that is there, so that
// a recorder built with one version's headers understands another's callbacks.
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
  // Memory that becomes or stops being usable. The driver's own records say the rest.
  kAlloc,
  kAllocPitch,
  kAllocHost,
  kHostRegister,
  kFree,
  // Virtual memory management, of which the driver has no records.
  kAddressReserve,
  kAddressFree,
  kCreate,
  kRelease,
  kMap,
  kUnmap,
  // Copies, memsets and what orders streams.
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
};

/// What a callback of this name is: "cuLaunchKernel_ptsz", "cuMemcpyDtoDAsync_v2". Names of other calls, and of
/// superseded ones with 32-bit sizes, are kOther.
DriverCall driver_call(std::string_view name);

/// Whether a call of the runtime ends in one of the driver calls above whose record carries the runtime call's
/// correlation id: "cudaLaunchKernel_v7000", "__cudaLaunchKernel_v13000", "cudaMemcpyAsync_v3020".
bool is_outer_call(std::string_view runtime_name);

/// Calls that only happen inside the window of iterations need no look otherwise.
constexpr bool is_launch(DriverCall call) {
  return (call >= DriverCall::kLaunchKernel && call <= DriverCall::kGraphLaunch) ||
         (call >= DriverCall::kCopy && call <= DriverCall::kEventRecord);
}

}  // namespace tidepool::cupti
