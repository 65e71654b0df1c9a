// Stand-in for cuBLAS. It answers for handles, and records products of matrices and vectors and triangular solves with
// their operands; nothing is computed.
#include <cstring>

#include "tracer/dry/device/library_call.hpp"

using namespace tidepool::dry;

namespace {

struct Handle {  // cublasContext
  void* stream = nullptr;
  int pointer_mode = 0, math_mode = 0, atomics = 0, multiprocessors = 0;
};

Handle& of(void* handle) { return *static_cast<Handle*>(handle); }

constexpr double kPair = 2;  // a multiplication and an addition

/// Records C = alpha A B + beta C. C counts as read, unless beta is on the host and is zero. beta may have one of many
/// types; in each, all bytes of zero are 0.
/// @param k  the inner size; four times that for complex numbers, whose product is four real products
Status multiply(void* handle, std::string_view name, double m, double n, double k, double batch, const void* a,
                const void* b, const void* beta, std::size_t scalar_bytes, void* c, bool tensor_cores = false) {
  static constexpr char kZeros[16] = {};
  const bool reads = of(handle).pointer_mode != 0 || std::memcmp(beta, kZeros, scalar_bytes) != 0;
  call_library(of(handle).stream,
               {name,
                {{a, Access::kRead}, {b, Access::kRead}, {c, reads ? Access::kReadWrite : Access::kWrite}},
                kPair * m * n * k * batch,
                tensor_cores});
  return kSuccess;
}

Status dot(void* handle, std::string_view name, double n, const void* x, const void* y, void* result) {
  call_library(of(handle).stream,
               {name, {{x, Access::kRead}, {y, Access::kRead}, {result, Access::kWrite}}, kPair * n});
  return kSuccess;
}

Status solve(void* handle, std::string_view name, double m, double n, const void* a, void* b) {
  call_library(of(handle).stream, {name, {{a, Access::kRead}, {b, Access::kReadWrite}}, m * m * n});
  return kSuccess;
}

constexpr std::size_t kFloat = 4, kDouble = 8, kComplex = 8, kDoubleComplex = 16;

/// Bytes of alpha and beta for a cublasComputeType_t: of a 16-bit number for CUBLAS_COMPUTE_16F, of a double for 64F,
/// else of a float or an int.
std::size_t scalar_bytes(int compute_type) {
  if (compute_type == 64 || compute_type == 65) return 2;
  return compute_type == 70 || compute_type == 71 ? kDouble : kFloat;
}

/// Whether a cudaDataType is a float of 16 bits: CUDA_R_16F or CUDA_R_16BF.
bool sixteen_bits(int type) { return type == 2 || type == 14; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cublasCreate_v2(void** handle) {
  *handle = new Handle;
  return kSuccess;
}
Status cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return kSuccess;
}
Status cublasSetStream_v2(void* handle, void* stream) {
  of(handle).stream = stream;
  return kSuccess;
}
Status cublasGetStream_v2(void* handle, void** stream) {
  *stream = of(handle).stream;
  return kSuccess;
}
Status cublasSetWorkspace_v2(void*, void*, std::size_t) { return kSuccess; }
Status cublasSetPointerMode_v2(void* handle, int mode) {
  of(handle).pointer_mode = mode;
  return kSuccess;
}
Status cublasGetPointerMode_v2(void* handle, int* mode) {
  *mode = of(handle).pointer_mode;
  return kSuccess;
}
Status cublasSetMathMode(void* handle, int mode) {
  of(handle).math_mode = mode;
  return kSuccess;
}
Status cublasGetMathMode(void* handle, int* mode) {
  *mode = of(handle).math_mode;
  return kSuccess;
}
Status cublasSetAtomicsMode(void* handle, int mode) {
  of(handle).atomics = mode;
  return kSuccess;
}
Status cublasSetSmCountTarget(void* handle, int count) {
  of(handle).multiprocessors = count;
  return kSuccess;
}
Status cublasGetSmCountTarget(void* handle, int* count) {
  *count = of(handle).multiprocessors;
  return kSuccess;
}

Status cublasSgemm_v2(void* handle, int, int, int m, int n, int k, const void*, const void* a, int, const void* b, int,
                      const void* beta, void* c, int) {
  return multiply(handle, "cublasSgemm", m, n, k, 1, a, b, beta, kFloat, c);
}
Status cublasDgemm_v2(void* handle, int, int, int m, int n, int k, const void*, const void* a, int, const void* b, int,
                      const void* beta, void* c, int) {
  return multiply(handle, "cublasDgemm", m, n, k, 1, a, b, beta, kDouble, c);
}
Status cublasCgemm_v2(void* handle, int, int, int m, int n, int k, const void*, const void* a, int, const void* b, int,
                      const void* beta, void* c, int) {
  return multiply(handle, "cublasCgemm", m, n, 4. * k, 1, a, b, beta, kComplex, c);
}
Status cublasZgemm_v2(void* handle, int, int, int m, int n, int k, const void*, const void* a, int, const void* b, int,
                      const void* beta, void* c, int) {
  return multiply(handle, "cublasZgemm", m, n, 4. * k, 1, a, b, beta, kDoubleComplex, c);
}
Status cublasSgemmEx(void* handle, int, int, int m, int n, int k, const void*, const void* a, int type, int,
                     const void* b, int, int, const void* beta, void* c, int, int) {
  return multiply(handle, "cublasSgemmEx", m, n, k, 1, a, b, beta, kFloat, c, sixteen_bits(type));
}
Status cublasGemmEx(void* handle, int, int, int m, int n, int k, const void*, const void* a, int type, int,
                    const void* b, int, int, const void* beta, void* c, int, int, int compute, int) {
  return multiply(handle, "cublasGemmEx", m, n, k, 1, a, b, beta, scalar_bytes(compute), c, sixteen_bits(type));
}
Status cublasGemmStridedBatchedEx(void* handle, int, int, int m, int n, int k, const void*, const void* a, int type,
                                  int, long long, const void* b, int, int, long long, const void* beta, void* c, int,
                                  int, long long, int batch, int compute, int) {
  return multiply(handle, "cublasGemmStridedBatchedEx", m, n, k, batch, a, b, beta, scalar_bytes(compute), c,
                  sixteen_bits(type));
}
Status cublasSgemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void* a, int,
                                 long long, const void* b, int, long long, const void* beta, void* c, int, long long,
                                 int batch) {
  return multiply(handle, "cublasSgemmStridedBatched", m, n, k, batch, a, b, beta, kFloat, c);
}
Status cublasDgemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void* a, int,
                                 long long, const void* b, int, long long, const void* beta, void* c, int, long long,
                                 int batch) {
  return multiply(handle, "cublasDgemmStridedBatched", m, n, k, batch, a, b, beta, kDouble, c);
}
Status cublasCgemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void* a, int,
                                 long long, const void* b, int, long long, const void* beta, void* c, int, long long,
                                 int batch) {
  return multiply(handle, "cublasCgemmStridedBatched", m, n, 4. * k, batch, a, b, beta, kComplex, c);
}
Status cublasZgemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void* a, int,
                                 long long, const void* b, int, long long, const void* beta, void* c, int, long long,
                                 int batch) {
  return multiply(handle, "cublasZgemmStridedBatched", m, n, 4. * k, batch, a, b, beta, kDoubleComplex, c);
}

Status cublasSgemv_v2(void* handle, int, int m, int n, const void*, const void* a, int, const void* x, int,
                      const void* beta, void* y, int) {
  return multiply(handle, "cublasSgemv", m, 1, n, 1, a, x, beta, kFloat, y);
}
Status cublasDgemv_v2(void* handle, int, int m, int n, const void*, const void* a, int, const void* x, int,
                      const void* beta, void* y, int) {
  return multiply(handle, "cublasDgemv", m, 1, n, 1, a, x, beta, kDouble, y);
}
Status cublasCgemv_v2(void* handle, int, int m, int n, const void*, const void* a, int, const void* x, int,
                      const void* beta, void* y, int) {
  return multiply(handle, "cublasCgemv", m, 1, 4. * n, 1, a, x, beta, kComplex, y);
}
Status cublasZgemv_v2(void* handle, int, int m, int n, const void*, const void* a, int, const void* x, int,
                      const void* beta, void* y, int) {
  return multiply(handle, "cublasZgemv", m, 1, 4. * n, 1, a, x, beta, kDoubleComplex, y);
}

Status cublasSdot_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasSdot", n, x, y, result);
}
Status cublasDdot_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasDdot", n, x, y, result);
}
Status cublasCdotu_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasCdotu", n, x, y, result);
}
Status cublasCdotc_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasCdotc", n, x, y, result);
}
Status cublasZdotu_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasZdotu", n, x, y, result);
}
Status cublasZdotc_v2(void* handle, int n, const void* x, int, const void* y, int, void* result) {
  return dot(handle, "cublasZdotc", n, x, y, result);
}
Status cublasDotEx(void* handle, int n, const void* x, int, int, const void* y, int, int, void* result, int, int) {
  return dot(handle, "cublasDotEx", n, x, y, result);
}

Status cublasStrsm_v2(void* handle, int, int, int, int, int m, int n, const void*, const void* a, int, void* b, int) {
  return solve(handle, "cublasStrsm", m, n, a, b);
}
Status cublasDtrsm_v2(void* handle, int, int, int, int, int m, int n, const void*, const void* a, int, void* b, int) {
  return solve(handle, "cublasDtrsm", m, n, a, b);
}

}  // extern "C"
#pragma GCC visibility pop
