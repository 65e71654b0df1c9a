// cuDNN's convolutions without a device. Workspaces are taken as empty: cuDNN chooses the algorithm, and with it the
// size of the workspace, by tables for each kind of device, which are not public.
#include <cstring>

#include "tracer/dry/device/cudnn.hpp"

using namespace tidepool::dry;

namespace {

struct AlgorithmPerformance {  // cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t
  int algorithm = 1;           // an implicit matrix product, in all three enumerations
  Status status = kSuccess;
  float milliseconds = 0;
  std::size_t memory = 0;
  int determinism = 1, math_type = 0;
  int reserved[3] = {};
};

/// One result for each math type, but at most `wanted`: PyTorch skips results whose type is not that of its descriptor.
Status algorithms(int wanted, int* returned, void* results) {
  constexpr int kMathTypes = 4;
  *returned = wanted < kMathTypes ? wanted : kMathTypes;
  for (int type = 0; type < *returned; ++type) {
    AlgorithmPerformance performance;
    performance.math_type = type;
    std::memcpy(static_cast<AlgorithmPerformance*>(results) + type, &performance, sizeof performance);
  }
  return kSuccess;
}

Status no_workspace(std::size_t* bytes) {
  *bytes = 0;
  return kSuccess;
}

/// A multiplication and an addition for every output element and every element of its filter.
double convolution_flops(const void* output, const void* filter) {
  return 2 * tensor_extents(output).elements() * filter_extents(filter).elements(1);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudnnGetConvolutionForwardAlgorithm_v7(void*, const void*, const void*, const void*, const void*, int wanted,
                                              int* returned, void* results) {
  return algorithms(wanted, returned, results);
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, const void*, const void*, const void*, const void*,
                                                   int wanted, int* returned, void* results) {
  return algorithms(wanted, returned, results);
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, const void*, const void*, const void*, const void*,
                                                     int wanted, int* returned, void* results) {
  return algorithms(wanted, returned, results);
}
Status cudnnFindConvolutionForwardAlgorithmEx(void*, const void*, const void*, const void*, const void*, const void*,
                                              const void*, void*, int wanted, int* returned, void* results, void*,
                                              std::size_t) {
  return algorithms(wanted, returned, results);
}
Status cudnnFindConvolutionBackwardDataAlgorithmEx(void*, const void*, const void*, const void*, const void*,
                                                   const void*, const void*, void*, int wanted, int* returned,
                                                   void* results, void*, std::size_t) {
  return algorithms(wanted, returned, results);
}
Status cudnnFindConvolutionBackwardFilterAlgorithmEx(void*, const void*, const void*, const void*, const void*,
                                                     const void*, const void*, void*, int wanted, int* returned,
                                                     void* results, void*, std::size_t) {
  return algorithms(wanted, returned, results);
}
Status cudnnGetConvolutionForwardWorkspaceSize(void*, const void*, const void*, const void*, const void*, int,
                                               std::size_t* bytes) {
  return no_workspace(bytes);
}
Status cudnnGetConvolutionBackwardDataWorkspaceSize(void*, const void*, const void*, const void*, const void*, int,
                                                    std::size_t* bytes) {
  return no_workspace(bytes);
}
Status cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, const void*, const void*, const void*, const void*, int,
                                                      std::size_t* bytes) {
  return no_workspace(bytes);
}

Status cudnnConvolutionForward(void* handle, const void*, const void*, const void* x, const void* filter, const void* w,
                               const void*, int, void* workspace, std::size_t, const void* beta, const void* output,
                               void* y) {
  call_library(cudnn_stream(handle), {"cudnnConvolutionForward",
                                      {{x, Access::kRead},
                                       {w, Access::kRead},
                                       {workspace, Access::kWrite},
                                       {y, blended(beta, tensor_extents(output))}},
                                      convolution_flops(output, filter),
                                      tensor_extents(output).sixteen_bits()});
  return kSuccess;
}
Status cudnnConvolutionBiasActivationForward(void* handle, const void*, const void*, const void* x, const void* filter,
                                             const void* w, const void*, int, void* workspace, std::size_t,
                                             const void* alpha2, const void*, const void* z, const void*,
                                             const void* bias, const void*, const void* output, void* y) {
  LibraryCall call{
      "cudnnConvolutionBiasActivationForward",
      {{x, Access::kRead}, {w, Access::kRead}, {bias, Access::kRead}, {workspace, Access::kWrite}, {y, Access::kWrite}},
      convolution_flops(output, filter),
      tensor_extents(output).sixteen_bits()};
  if (blended(alpha2, tensor_extents(output)) == Access::kReadWrite) call.operands.push_back({z, Access::kRead});
  call_library(cudnn_stream(handle), std::move(call));
  return kSuccess;
}
Status cudnnConvolutionBackwardData(void* handle, const void*, const void* filter, const void* w, const void* output,
                                    const void* dy, const void*, int, void* workspace, std::size_t, const void* beta,
                                    const void*, void* dx) {
  call_library(cudnn_stream(handle), {"cudnnConvolutionBackwardData",
                                      {{w, Access::kRead},
                                       {dy, Access::kRead},
                                       {workspace, Access::kWrite},
                                       {dx, blended(beta, tensor_extents(output))}},
                                      convolution_flops(output, filter),
                                      tensor_extents(output).sixteen_bits()});
  return kSuccess;
}
Status cudnnConvolutionBackwardFilter(void* handle, const void*, const void*, const void* x, const void* output,
                                      const void* dy, const void*, int, void* workspace, std::size_t, const void* beta,
                                      const void* filter, void* dw) {
  call_library(cudnn_stream(handle), {"cudnnConvolutionBackwardFilter",
                                      {{x, Access::kRead},
                                       {dy, Access::kRead},
                                       {workspace, Access::kWrite},
                                       {dw, blended(beta, tensor_extents(output))}},
                                      convolution_flops(output, filter),
                                      tensor_extents(output).sixteen_bits()});
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
