// PyTorch's reductions of a few 64-bit integers to one, which a dry run computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tracer/dry/cubin.hpp"

namespace tidepool::dry {

/// The largest, the least or the sum of some sizes. With it, programs that exchange objects compute the sizes of their
/// messages.
struct SizeReduction {
  static constexpr std::uint32_t kBytes = 8;  ///< of a number

  enum class Operator : std::uint8_t { kMax, kMin, kSum } what = Operator::kMax;
  std::uint64_t from = 0, to = 0;  ///< addresses of the first number and of the result
  std::uint32_t count = 0;
  std::uint32_t stride = kBytes;  ///< bytes from each number to the next; any if there is only one
  std::uint64_t bytes() const { return std::uint64_t{count - 1} * stride + kBytes; }  ///< that hold the numbers
  void compute() const;                                                               ///< on host addresses
};

/// The operator of PyTorch's reduction of 64-bit integers, by the kernel's mangled name; nothing for other kernels.
std::optional<SizeReduction::Operator> size_operator(std::string_view mangled);

/// The reduction by a launch of such a kernel; nothing if it has several results, more than 4096 numbers, numbers at
/// unequal distances, or a parameter of another layout.
/// Layout of its one parameter: struct ReduceOp in ATen/native/cuda/Reduce.cuh.
std::optional<SizeReduction> size_reduction(SizeReduction::Operator what, const cupti::KernelLayout& layout,
                                            const void* const* arguments);

}  // namespace tidepool::dry
