#include "tracer/inject/layouts.hpp"

#include <mutex>

namespace tidepool::inject {
namespace {

constexpr std::size_t kMostParameters = 4096;  // the parameter buffer has at most 32,764 bytes: 4095 pointers

struct Layout {
  cupti::KernelLayout parameters;
  CUresult end = CUDA_ERROR_NOT_FOUND;  ///< the answer for the parameter after the last one

  /// The driver answers CUDA_ERROR_INVALID_VALUE after the last parameter, but also for some handles that the call does
  /// not describe (a CUkernel instead of a CUfunction). So a known layout without parameters may be wrong.
  bool known() const { return end == CUDA_ERROR_INVALID_VALUE; }
};

/// Asks for parameters 0, 1, ... up to the last.
template <class Function, class Handle>
Layout read_layout(Function* ask, Handle handle) {
  Layout layout;
  for (std::size_t i = 0; ask != nullptr && i < kMostParameters; ++i) {
    std::size_t offset = 0, size = 0;
    layout.end = ask(handle, i, &offset, &size);
    if (layout.end != CUDA_SUCCESS) break;
    layout.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
  if (!layout.known()) layout.parameters.clear();
  return layout;
}

/// The driver's answers about a function. Launches take a CUkernel as a CUfunction; the calls that describe a function
/// may not.
/// @param refusals  set to the answers of both calls if neither gives the layout
std::shared_ptr<KernelInfo> ask(const DriverLibrary& driver, CUfunction function,
                                std::pair<CUresult, CUresult>& refusals) {
  auto info = std::make_shared<KernelInfo>();
  const auto kernel = reinterpret_cast<CUkernel>(function);
  const char* name = nullptr;
  const bool has_name = driver.function_name != nullptr && driver.function_name(&name, function) == CUDA_SUCCESS;
  if (!has_name)
    if (driver.kernel_name == nullptr || driver.kernel_name(&name, kernel) != CUDA_SUCCESS) name = nullptr;
  if (name != nullptr) info->name = name;
  const std::vector<cupti::ParameterType> types = cupti::parameter_types(info->name);

  const Layout as_function = read_layout(driver.function_parameter, function);
  info->handle = HandleKind::kFunction;
  info->known = as_function.known();
  info->layout = as_function.parameters;
  if (info->layout.empty() && (!info->known || !has_name || !types.empty())) {
    const Layout as_kernel = read_layout(driver.kernel_parameter, kernel);
    if (as_kernel.known() && (!info->known || !as_kernel.parameters.empty())) {
      info->handle = HandleKind::kKernel;
      info->known = true;
      info->layout = as_kernel.parameters;
    }
    if (!info->known) {
      info->handle = HandleKind::kNeither;
      refusals = {as_function.end, as_kernel.end};
    }
  }
  cupti::apply_types(info->layout, types);
  info->torch = cupti::TorchKernel::recognise(info->name, info->layout);
  return info;
}

}  // namespace

std::shared_ptr<const KernelInfo> Layouts::of(const DriverLibrary& driver, CUfunction function) {
  {
    const std::shared_lock lock{mutex_};
    if (const auto found = known_.find(function); found != known_.end()) return found->second;
  }
  std::pair<CUresult, CUresult> refusals{CUDA_SUCCESS, CUDA_SUCCESS};
  const auto info = ask(driver, function, refusals);
  info->begins_iteration = !marker_.empty() && info->name.find(marker_) != std::string::npos;
  const std::unique_lock lock{mutex_};
  const auto [entry, added] = known_.try_emplace(function, info);
  if (added) ++counts_[static_cast<std::size_t>(info->handle)];
  if (info->handle == HandleKind::kNeither) refusals_ = refusals;
  return entry->second;
}

std::string Layouts::summary() const {
  const std::shared_lock lock{mutex_};
  std::string text = std::to_string(counts_[0]) + " by cuFuncGetParamInfo, " + std::to_string(counts_[1]) +
                     " by cuKernelGetParamInfo, " + std::to_string(counts_[2]) + " by neither";
  if (counts_[2] > 0) text += " (" + std::to_string(refusals_.first) + ", " + std::to_string(refusals_.second) + ")";
  return text;
}

void Layouts::forget() {
  const std::unique_lock lock{mutex_};
  known_.clear();
}

}  // namespace tidepool::inject
