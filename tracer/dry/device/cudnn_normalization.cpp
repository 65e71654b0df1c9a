// cuDNN's batch normalization without a device.
#include "tracer/dry/device/cudnn.hpp"

using namespace tidepool::dry;

namespace {

Status nothing_needed(std::size_t* bytes) {
  *bytes = 0;
  return kSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, const void*, const void*, const void*,
                                                                const void*, const void*, std::size_t* bytes) {
  return nothing_needed(bytes);
}
Status cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, const void*, const void*, const void*,
                                                         const void*, const void*, const void*, const void*,
                                                         std::size_t* bytes) {
  return nothing_needed(bytes);
}
/// Bytes that forward keeps for backward besides mean and deviation. Taken as 0, as without a fused activation: PyTorch
/// fuses none.
Status cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, const void*, const void*,
                                                            std::size_t* bytes) {
  return nothing_needed(bytes);
}

Status cudnnBatchNormalizationForwardTrainingEx(void* handle, int, int, const void*, const void*, const void*,
                                                const void* x, const void*, const void* z, const void*, void* y,
                                                const void*, const void* scale, const void* bias, double, void* mean,
                                                void* variance, double, void* saved_mean, void* saved_deviation,
                                                const void*, void* workspace, std::size_t, void* reserve, std::size_t) {
  call_library(cudnn_stream(handle), {"cudnnBatchNormalizationForwardTrainingEx",
                                      {{x, Access::kRead},
                                       {z, Access::kRead},
                                       {scale, Access::kRead},
                                       {bias, Access::kRead},
                                       {y, Access::kWrite},
                                       {mean, Access::kReadWrite},
                                       {variance, Access::kReadWrite},
                                       {saved_mean, Access::kWrite},
                                       {saved_deviation, Access::kWrite},
                                       {workspace, Access::kWrite},
                                       {reserve, Access::kWrite}},
                                      0});
  return kSuccess;
}
Status cudnnBatchNormalizationForwardInference(void* handle, int, const void*, const void*, const void*, const void* x,
                                               const void*, void* y, const void*, const void* scale, const void* bias,
                                               const void* mean, const void* variance, double) {
  call_library(cudnn_stream(handle), {"cudnnBatchNormalizationForwardInference",
                                      {{x, Access::kRead},
                                       {scale, Access::kRead},
                                       {bias, Access::kRead},
                                       {mean, Access::kRead},
                                       {variance, Access::kRead},
                                       {y, Access::kWrite}},
                                      0});
  return kSuccess;
}
Status cudnnBatchNormalizationBackwardEx(void* handle, int, int, const void*, const void*, const void*, const void*,
                                         const void*, const void* x, const void*, const void* y, const void*,
                                         const void* dy, const void*, void* dz, const void*, void* dx, const void*,
                                         const void* scale, const void* bias, void* d_scale, void* d_bias, double,
                                         const void* saved_mean, const void* saved_deviation, const void*,
                                         void* workspace, std::size_t, void* reserve, std::size_t) {
  call_library(cudnn_stream(handle), {"cudnnBatchNormalizationBackwardEx",
                                      {{x, Access::kRead},
                                       {y, Access::kRead},
                                       {dy, Access::kRead},
                                       {scale, Access::kRead},
                                       {bias, Access::kRead},
                                       {saved_mean, Access::kRead},
                                       {saved_deviation, Access::kRead},
                                       {reserve, Access::kRead},
                                       {dx, Access::kWrite},
                                       {dz, Access::kWrite},
                                       {d_scale, Access::kWrite},
                                       {d_bias, Access::kWrite},
                                       {workspace, Access::kWrite}},
                                      0});
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
