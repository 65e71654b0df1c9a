#include "tracer/cupti/driver_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tidepool::cupti {
namespace {

using enum DriverCall;

// Sorted by name. The parameters of calls of one kind begin with the same fields.
constexpr auto kCalls = std::to_array<std::pair<std::string_view, DriverCall>>({
    {"cuEventRecord", kEventRecord},
    {"cuEventRecordWithFlags", kEventRecord},
    {"cuGraphAddKernelNode", kAddKernelNode},
    {"cuGraphAddKernelNode_v2", kAddKernelNode},
    {"cuGraphAddMemcpyNode", kAddCopyNode},
    {"cuGraphAddMemsetNode", kAddMemsetNode},
    {"cuGraphAddNode", kAddNode},
    {"cuGraphAddNode_v2", kAddNodeEdges},
    {"cuGraphExecKernelNodeSetParams", kSetExecKernelNode},
    {"cuGraphExecKernelNodeSetParams_v2", kSetExecKernelNode},
    {"cuGraphExecNodeSetParams", kSetExecNode},
    {"cuGraphKernelNodeSetParams", kSetKernelNode},
    {"cuGraphKernelNodeSetParams_v2", kSetKernelNode},
    {"cuGraphLaunch", kGraphLaunch},
    {"cuGraphNodeSetParams", kSetNode},
    {"cuLaunchCooperativeKernel", kLaunchCooperative},
    {"cuLaunchKernel", kLaunchKernel},
    {"cuLaunchKernelEx", kLaunchKernelEx},
    {"cuMemAddressFree", kAddressFree},
    {"cuMemAddressReserve", kAddressReserve},
    {"cuMemAllocAsync", kAlloc},
    {"cuMemAllocFromPoolAsync", kAlloc},
    {"cuMemAllocHost_v2", kAllocHost},
    {"cuMemAllocManaged", kAlloc},
    {"cuMemAllocPitch_v2", kAllocPitch},
    {"cuMemAlloc_v2", kAlloc},
    {"cuMemCreate", kCreate},
    {"cuMemFreeAsync", kFree},
    {"cuMemFreeHost", kFree},
    {"cuMemFree_v2", kFree},
    {"cuMemHostAlloc", kAllocHost},
    {"cuMemHostRegister", kHostRegister},
    {"cuMemHostRegister_v2", kHostRegister},
    {"cuMemHostUnregister", kFree},
    {"cuMemMap", kMap},
    {"cuMemRelease", kRelease},
    {"cuMemUnmap", kUnmap},
    {"cuMemcpy", kCopy},
    {"cuMemcpy2DAsync_v2", kCopy2D},
    {"cuMemcpy2DUnaligned_v2", kCopy2D},
    {"cuMemcpy2D_v2", kCopy2D},
    {"cuMemcpy3DAsync_v2", kCopy3D},
    {"cuMemcpy3DPeer", kCopy3DPeer},
    {"cuMemcpy3DPeerAsync", kCopy3DPeer},
    {"cuMemcpy3D_v2", kCopy3D},
    {"cuMemcpyAsync", kCopy},
    {"cuMemcpyBatchAsync", kCopyBatch},
    {"cuMemcpyBatchAsync_v2", kCopyBatch},
    {"cuMemcpyDtoDAsync_v2", kCopy},
    {"cuMemcpyDtoD_v2", kCopy},
    {"cuMemcpyDtoHAsync_v2", kCopy},
    {"cuMemcpyDtoH_v2", kCopy},
    {"cuMemcpyHtoDAsync_v2", kCopy},
    {"cuMemcpyHtoD_v2", kCopy},
    {"cuMemcpyPeer", kCopyPeer},
    {"cuMemcpyPeerAsync", kCopyPeer},
    {"cuMemsetD16Async", kMemset16},
    {"cuMemsetD16_v2", kMemset16},
    {"cuMemsetD2D16Async", kMemset2D16},
    {"cuMemsetD2D16_v2", kMemset2D16},
    {"cuMemsetD2D32Async", kMemset2D32},
    {"cuMemsetD2D32_v2", kMemset2D32},
    {"cuMemsetD2D8Async", kMemset2D8},
    {"cuMemsetD2D8_v2", kMemset2D8},
    {"cuMemsetD32Async", kMemset32},
    {"cuMemsetD32_v2", kMemset32},
    {"cuMemsetD8Async", kMemset8},
    {"cuMemsetD8_v2", kMemset8},
    {"cuTensorMapEncodeIm2col", kTensorMapEncode},
    {"cuTensorMapEncodeIm2colWide", kTensorMapEncode},
    {"cuTensorMapEncodeTiled", kTensorMapEncode},
    {"cuTensorMapReplaceAddress", kTensorMapReplaceAddress},
});
static_assert(std::is_sorted(kCalls.begin(), kCalls.end()));

}  // namespace

DriverCall driver_call(std::string_view name) {
  // The variants for per-thread default streams take the same parameters.
  for (const std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  const auto found = std::lower_bound(kCalls.begin(), kCalls.end(), name,
                                      [](const auto& call, std::string_view asked) { return call.first < asked; });
  return found != kCalls.end() && found->first == name ? found->second : kOther;
}

bool is_outer_call(std::string_view runtime_name) {
  while (runtime_name.starts_with('_')) runtime_name.remove_prefix(1);
  for (const std::string_view beginning :
       {"cudaLaunch", "cudaGraphLaunch", "cudaMemcpy", "cudaMemset", "cudaEventRecord"})
    if (runtime_name.starts_with(beginning)) return true;
  return false;
}

}  // namespace tidepool::cupti
