// The parameters of each kernel; the driver is asked once for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/cupti/torch_kernels.hpp"
#include "tracer/inject/library.hpp"

namespace tidepool::inject {

/// The kind of object that the driver takes a launch handle for.
enum class HandleKind : std::uint8_t { kFunction, kKernel, kNeither };

struct KernelInfo {
  std::string name;  ///< mangled; "" if the driver does not have it
  cupti::KernelLayout layout;
  std::optional<cupti::TorchKernel> torch;  ///< if its parameters follow a convention of PyTorch
  HandleKind handle = HandleKind::kNeither;
  bool known = false;             ///< the driver gave the layout, which may be empty
  bool begins_iteration = false;  ///< its name contains the text that marks iterations
};

/// Kernels by function, valid until their module is unloaded. Shared by the job's threads.
class Layouts {
 public:
  /// @param marker  a kernel whose name contains this text begins an iteration; "" for none
  explicit Layouts(std::string marker) : marker_{std::move(marker)} {}
  /// @param function  a CUfunction, or a CUkernel cast to one, as launches take both
  std::shared_ptr<const KernelInfo> of(const DriverLibrary& driver, CUfunction function);
  /// A module was unloaded: the driver may use its handles for other functions.
  void forget();
  /// "12 by cuFuncGetParamInfo, 3 by cuKernelGetParamInfo, 1 by neither (400, 1)": the counts of all kernels so far.
  /// The numbers in parentheses are the last answers of both calls about a kernel that neither call described.
  std::string summary() const;

 private:
  const std::string marker_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<CUfunction, std::shared_ptr<const KernelInfo>> known_;
  std::array<std::size_t, 3> counts_{};  ///< by HandleKind
  std::pair<CUresult, CUresult> refusals_{CUDA_SUCCESS, CUDA_SUCCESS};
};

}  // namespace tidepool::inject
