#include "tracer/inject/layouts.hpp"

#include <mutex>

namespace tidepool::inject {
namespace {

constexpr std::size_t kMostParameters = 4096;  // the parameter buffer has at most 32,764 bytes

/// Asks for parameters 0, 1, ... up to the last. @return whether the driver knows the function
template <class Function, class Handle>
bool read_layout(Function* ask, Handle handle, cupti::KernelLayout& layout) {
  if (ask == nullptr) return false;
  for (std::size_t i = 0; i < kMostParameters; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = ask(handle, i, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) return true;
    if (result != CUDA_SUCCESS) break;
    layout.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
  layout.clear();
  return false;
}

std::shared_ptr<KernelInfo> ask(const DriverLibrary& driver, CUfunction function) {
  auto info = std::make_shared<KernelInfo>();
  const auto kernel = reinterpret_cast<CUkernel>(function);
  info->known = read_layout(driver.function_parameter, function, info->layout) ||
                read_layout(driver.kernel_parameter, kernel, info->layout);
  const char* name = nullptr;
  if (driver.function_name == nullptr || driver.function_name(&name, function) != CUDA_SUCCESS)
    if (driver.kernel_name == nullptr || driver.kernel_name(&name, kernel) != CUDA_SUCCESS) name = nullptr;
  if (name != nullptr) info->name = name;
  cupti::apply_types(info->layout, cupti::parameter_types(info->name));
  info->torch = cupti::TorchKernel::recognise(info->name, info->layout);
  return info;
}

}  // namespace

std::shared_ptr<const KernelInfo> Layouts::of(const DriverLibrary& driver, CUfunction function) {
  {
    const std::shared_lock lock{mutex_};
    if (const auto found = known_.find(function); found != known_.end()) return found->second;
  }
  const auto info = ask(driver, function);
  info->begins_iteration = !marker_.empty() && info->name.find(marker_) != std::string::npos;
  const std::unique_lock lock{mutex_};
  return known_.try_emplace(function, info).first->second;
}

void Layouts::forget() {
  const std::unique_lock lock{mutex_};
  known_.clear();
}

}  // namespace tidepool::inject
