// Reductions of small messages, as NCCL defines them (nccl.h: ncclDataType_t, ncclRedOp_t).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tidepool::dry {

/// Numbers of ncclDataType_t.
enum class Element : int {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8E4M3,
  kFloat8E5M2,
};

/// Bytes of one element; nothing for an unknown type.
std::optional<std::size_t> element_bytes(int type);
/// Whether the elements are whole numbers: sizes, indices, bytes of objects.
bool is_whole(Element type);

/// Numbers of ncclRedOp_t.
enum class Reduction : int { kSum, kProduct, kMax, kMin, kAverage };

/// The reduction of the contributions of all ranks: at least one, all of the same size. Floats of 8 bits are not
/// reduced: the result is the first contribution.
/// @param factor  multiplies every contribution before the reduction (ncclRedOpCreatePreMulSum)
std::vector<std::byte> reduced(std::span<const std::vector<std::byte>> contributions, Element type, Reduction reduction,
                               double factor = 1);

/// The value of an element; 1 for floats of 8 bits.
double number_of(const void* element, Element type);

}  // namespace tidepool::dry
