// Kernels of PyTorch that read and write buffers by a known convention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace tidepool::cupti {

/// Access of a kernel to the buffer of a pointer among its parameters; kNone: the launch does not use the pointer.
enum class Role : std::uint8_t { kUnknown, kNone, kRead, kWrite, kReadWrite };

/// A kernel whose parameters follow a convention of PyTorch.
///
/// multi_tensor_apply_kernel (foreach functions, fused optimizers) gets lists of addresses in a struct of fixed size.
/// Addresses after the launch's own tensors are left over from other calls (kNone). A table with the tensor of each
/// block gives the number of tensors. The functor's template arguments give the number of lists that are read, and the
/// list that is written. Layout: ATen/native/cuda/MultiTensorApply.cuh, with 4 KiB of parameters and with 32 KiB.
///
/// vectorized_elementwise_kernel and unrolled_elementwise_kernel get an array of addresses: the result, then the
/// operands (ATen/native/cuda/CUDALoops.cuh).
class TorchKernel {
 public:
  /// @param mangled  the kernel's name
  /// @return none for any other kernel, and if the parameters do not have the size of the layout
  static std::optional<TorchKernel> recognise(std::string_view mangled, const KernelLayout& layout);

  /// The roles of the pointers `found` in the parameters of one launch of `blocks` blocks, in the same order.
  /// @param values  the argument of cuLaunchKernel, not null: one host pointer for each parameter
  std::vector<Role> roles(std::span<const FoundPointer> found, const void* const* values, std::uint32_t blocks) const;

 private:
  struct Lists {
    std::uint32_t depth = 0, room = 0;  ///< number of lists, and the most tensors in each
    std::uint32_t states = 0;           ///< byte at which the addresses of the step counters begin; 0: none
    std::uint32_t block_to_tensor = 0;  ///< byte at which the table with the tensor of each block begins
    std::uint32_t index_bytes = 0, most_blocks = 0;
    std::uint32_t read = 0;                ///< the number of lists that are read; 0 and no `written`: not known
    std::optional<std::uint32_t> written;  ///< index of the list that is written
  };

  static std::optional<Lists> lists(std::string_view mangled, std::uint32_t bytes);
  Role role_in_lists(const FoundPointer& pointer, std::uint32_t tensors) const;

  std::optional<Lists> lists_;
  std::uint32_t array_ = 0;  ///< without lists: the parameter that holds result and operands
};

}  // namespace tidepool::cupti
