// The parameters of each kernel, asked of the driver once.
#pragma once

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

struct KernelInfo {
  std::string name;  ///< mangled; "" if the driver does not say
  cupti::KernelLayout layout;
  std::optional<cupti::TorchKernel> torch;  ///< one of PyTorch's whose parameters follow its conventions
  bool known = false;                       ///< the driver told the layout, which may be empty
  bool begins_iteration = false;            ///< its name contains the text that marks iterations
};

/// By function; valid until its module goes. Shared by the job's threads.
class Layouts {
 public:
  /// @param marker  what the names of kernels contain that begin an iteration; "" for none
  explicit Layouts(std::string marker) : marker_{std::move(marker)} {}
  /// @param function  a CUfunction, or a CUkernel cast to one, as launches take both
  std::shared_ptr<const KernelInfo> of(const DriverLibrary& driver, CUfunction function);
  /// A module was unloaded: its handles may come to mean other functions.
  void forget();

 private:
  const std::string marker_;
  std::shared_mutex mutex_;
  std::unordered_map<CUfunction, std::shared_ptr<const KernelInfo>> known_;
};

}  // namespace tidepool::inject
