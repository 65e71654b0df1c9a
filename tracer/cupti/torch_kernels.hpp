// Parameters of PyTorch's own kernels, where their names tell what is read and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace tidepool::cupti {

/// What a kernel does with a buffer through a pointer among its parameters.
enum class Role : std::uint8_t { kUnknown, kNone, kRead, kWrite, kReadWrite };

/// A kernel whose parameters follow a convention of PyTorch's.
///
/// multi_tensor_apply_kernel (foreach functions, fused optimizers) is handed lists of addresses in a struct with room
/// for many more: what lies behind the launch's own tensors is left over from other calls and means nothing (kNone).
/// How many there are is said by which tensor each block works on. The functor's template arguments say how many lists
/// are read and which one is written. Layout: ATen/native/cuda/MultiTensorApply.cuh, with 4 KiB of parameters and with
/// 32 KiB.
///
/// vectorized_elementwise_kernel and unrolled_elementwise_kernel are handed an array of addresses: the result, then the
/// operands (ATen/native/cuda/CUDALoops.cuh).
class TorchKernel {
 public:
  /// @param mangled  the kernel's name
  /// @return nothing for any other kernel, and where the parameters do not have the size that the layout would have
  static std::optional<TorchKernel> recognise(std::string_view mangled, const KernelLayout& layout);

  /// The roles of pointers found in the parameters of one launch of `blocks` blocks, in the same order.
  std::vector<Role> roles(std::span<const FoundPointer> found, const void* const* values, std::uint32_t blocks) const;

 private:
  struct Lists {
    std::uint32_t depth = 0, room = 0;  ///< lists, and tensors that each has room for
    std::uint32_t states = 0;           ///< where addresses of the optimizer's step counters begin; 0: there are none
    std::uint32_t block_to_tensor = 0;  ///< where the tensor of each block begins
    std::uint32_t index_bytes = 0, most_blocks = 0;
    std::uint32_t read = 0;                ///< the first lists are read; 0 with `written` none: not known
    std::optional<std::uint32_t> written;  ///< the list that is written
  };

  static std::optional<Lists> lists(std::string_view mangled, std::uint32_t bytes);
  Role role_in_lists(const FoundPointer& pointer, std::uint32_t tensors) const;

  std::optional<Lists> lists_;
  std::uint32_t array_ = 0;  ///< without lists: the parameter that holds result and operands
};

}  // namespace tidepool::cupti
