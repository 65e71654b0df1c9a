// Stand-in for cuBLASLt. The real library makes the descriptors, for which it needs no device; products are answered
// here.
#include <cstring>

#include "tracer/dry/device/library_call.hpp"

using namespace tidepool::dry;

namespace {

using GetAttribute = Status (*)(const void*, int, void*, std::size_t, std::size_t*);

/// An attribute of a descriptor of the real library; `otherwise` if it cannot be read.
template <class T>
T attribute(const char* function, const void* descriptor, int which, T otherwise) {
  T value{};
  std::size_t written = 0;
  const auto get = reinterpret_cast<GetAttribute>(real_function("libcublasLt.so", function));
  if (get == nullptr || descriptor == nullptr || get(descriptor, which, &value, sizeof value, &written) != kSuccess)
    return otherwise;
  return value;
}

struct Extent {
  double rows = 0, columns = 0, batch = 1;
  bool sixteen_bits = false;
};

Extent extent_of(const void* layout) {
  constexpr int kType = 0, kRows = 2, kColumns = 3, kBatchCount = 5;  // cublasLtMatrixLayoutAttribute_t
  constexpr const char* kGet = "cublasLtMatrixLayoutGetAttribute";
  constexpr int kHalf = 2, kBfloat = 14;  // cudaDataType
  const auto type = attribute<std::int32_t>(kGet, layout, kType, 0);
  return {static_cast<double>(attribute<std::uint64_t>(kGet, layout, kRows, 0)),
          static_cast<double>(attribute<std::uint64_t>(kGet, layout, kColumns, 0)),
          static_cast<double>(attribute<std::int32_t>(kGet, layout, kBatchCount, 1)), type == kHalf || type == kBfloat};
}

const void* pointer_of(const void* operation, int which) {
  return attribute<const void*>("cublasLtMatmulDescGetAttribute", operation, which, nullptr);
}

std::int32_t setting_of(const void* operation, int which) {
  return attribute<std::int32_t>("cublasLtMatmulDescGetAttribute", operation, which, 0);
}

/// Bytes of alpha and of beta, each of the cudaDataType `type`.
std::size_t scale_bytes(std::int32_t type) {
  constexpr std::int32_t kR64 = 1, kR16 = 2, kR16B = 14, kC32 = 4, kC64 = 5;  // CUDA_R_64F, CUDA_R_16F and so on
  switch (type) {
    case kR16:
    case kR16B:
      return 2;
    case kR64:
    case kC32:
      return 8;
    case kC64:
      return 16;
    default:
      return 4;
  }
}

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8] = {};
  std::size_t workspace_bytes = 0;
  Status status = kSuccess;
  float waves = 1;
  int reserved[4] = {};
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cublasLtCreate(void** handle) {
  *handle = &DryDevice::get();
  return kSuccess;
}
Status cublasLtDestroy(void*) { return kSuccess; }

Status cublasLtMatmulAlgoGetHeuristic(void*, const void*, const void*, const void*, const void*, const void*,
                                      const void*, int wanted, void* results, int* returned) {
  *returned = wanted > 0 ? 1 : 0;
  if (wanted > 0) {
    const HeuristicResult result;
    std::memcpy(results, &result, sizeof result);
  }
  return kSuccess;
}
Status cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int, void* algorithm) {
  std::memset(algorithm, 0, sizeof HeuristicResult::algorithm);
  return kSuccess;
}
Status cublasLtMatmulAlgoCheck(void*, const void*, const void*, const void*, const void*, const void*, const void*,
                               void* result) {
  const HeuristicResult fits;
  std::memcpy(result, &fits, sizeof fits);
  return kSuccess;
}

Status cublasLtMatmul(void*, const void* operation, const void*, const void* a, const void* a_layout, const void* b,
                      const void*, const void* beta, const void* c, const void*, void* d, const void* d_layout,
                      const void*, void* workspace, std::size_t workspace_bytes, void* stream) {
  constexpr int kScaleType = 1, kPointerMode = 2, kBias = 8, kAuxiliary = 11;  // cublasLtMatmulDescAttributes_t
  const Extent left = extent_of(a_layout), out = extent_of(d_layout);
  const double inner = out.rows > 0 ? left.rows * left.columns / out.rows : 0;
  LibraryCall call{"cublasLtMatmul",
                   {{a, Access::kRead}, {b, Access::kRead}},
                   2 * out.rows * out.columns * inner * out.batch,
                   left.sixteen_bits};
  const bool on_host = setting_of(operation, kPointerMode) == 0 && beta != nullptr;
  if (!on_host || !is_zero(beta, scale_bytes(setting_of(operation, kScaleType))))
    call.operands.push_back({c, Access::kRead});
  call.operands.push_back({d, Access::kWrite});
  call.operands.push_back({pointer_of(operation, kBias), Access::kTouch});
  call.operands.push_back({pointer_of(operation, kAuxiliary), Access::kTouch});
  if (workspace_bytes != 0) call.operands.push_back({workspace, Access::kWrite});
  call_library(stream, std::move(call));
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
