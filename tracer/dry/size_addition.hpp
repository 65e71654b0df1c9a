// PyTorch's additions of a few 64-bit integers. A dry run computes them, as it computes reductions of sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tracer/dry/cubin.hpp"

namespace tidepool::dry {

/// Sums of sizes with a number, or with other sizes. From such sums, programs that exchange objects know where an
/// object ends in a message.
struct SizeAddition {
  enum class Operands : std::uint8_t { kNumber, kSizes };
  std::uint64_t from = 0, others = 0, to = 0;  ///< addresses; others is 0 if a number is added
  std::int64_t number = 0, factor = 1;         ///< the factor multiplies the number, or the other sizes
  std::uint32_t count = 0;                     ///< number of sums

  static constexpr std::uint32_t kBytes = 8;  ///< of a size
  std::uint64_t bytes() const { return std::uint64_t{count} * kBytes; }
  void compute() const;  ///< on host addresses
};

/// The kind of operands that a kernel of PyTorch adds to 64-bit integers, by its mangled name; none for other kernels.
std::optional<SizeAddition::Operands> size_operands(std::string_view mangled);

/// The addition by a launch of such a kernel; nothing if it has more than 64 sizes or parameters of another layout.
/// Layout of its parameters: vectorized_elementwise_kernel in ATen/native/cuda/CUDALoops.cuh.
std::optional<SizeAddition> size_addition(SizeAddition::Operands operands, const cupti::KernelLayout& layout,
                                          const void* const* arguments);

}  // namespace tidepool::dry
