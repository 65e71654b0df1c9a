#include "simulator/studies/fit/device_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool {
namespace {

constexpr Bytes mib(std::int64_t count) { return Bytes{count << 20}; }

// Bytes of the kernels of cuBLAS and PyTorch, if all are loaded at the start: tests/recording/fit_table.py measures a
// context on an A100 that is larger than the context in tracer/dry by this much. With image models, it measures the
// kernels of cuDNN in addition.
constexpr Bytes kKernels = mib(1446 - 420), kCudnnKernels = mib(1609 - 1446);

// Twice cublasGetWorkspaceSize() of PyTorch (aten/src/ATen/cuda/CublasHandlePool.cpp), since two threads use cuBLAS.
constexpr Bytes kWorkspaces{2 * (8'320 << 10)}, kHopperWorkspaces = mib(2 * 32);
// The workspace of hipBLASLt, for two threads (aten/src/ATen/cuda/CUDABlas.cpp).
constexpr Bytes kAmdWorkspaces = mib(2 * 76);

constexpr DeviceBudget unmeasured(std::string_view name, Bytes total, Bytes context, Bytes workspace) {
  return {name, total, {context, context, context + kKernels}, {Bytes{}, Bytes{}, kCudnnKernels}, false, workspace};
}

constexpr DeviceBudget a100(std::string_view name, Bytes total) {
  return {name, total, {mib(420), mib(1446), mib(1457)}, {Bytes{}, kCudnnKernels, mib(310)}, true, kWorkspaces};
}

// Totals and least contexts are those of tracer/dry/preset.cpp. Dry runs do not have AMD's devices: their totals are
// those that rocm-smi prints, for one of the two devices of an MI250; their context is assumed to be that of an H100.
constexpr std::array kBudgets{unmeasured("h100-80gb", mib(81079), mib(520), kHopperWorkspaces),
                              unmeasured("h200", mib(143156), mib(520), kHopperWorkspaces),
                              a100("a100-80gb", mib(81050)),
                              a100("a100-40gb", mib(40326)),
                              unmeasured("rtx-3090", mib(24245), mib(300), kWorkspaces),
                              unmeasured("rtx-4090", mib(24210), mib(400), kWorkspaces),
                              unmeasured("rtx-4080", mib(16049), mib(400), kWorkspaces),
                              unmeasured("rtx-3060", mib(11931), mib(300), kWorkspaces),
                              unmeasured("rtx-4060", mib(7805), mib(400), kWorkspaces),
                              unmeasured("b200", mib(182630), mib(520), kHopperWorkspaces),
                              unmeasured("rtx-pro-6000", mib(97249), mib(450), kWorkspaces),
                              unmeasured("rtx-pro-5000", mib(48624), mib(400), kWorkspaces),
                              unmeasured("rtx-5090", mib(32117), mib(450), kWorkspaces),
                              unmeasured("l40s", mib(45486), mib(400), kWorkspaces),
                              unmeasured("l4", mib(22491), mib(300), kWorkspaces),
                              unmeasured("t4", mib(14930), mib(120), kWorkspaces),
                              unmeasured("mi300x", mib(196592), mib(520), kAmdWorkspaces),
                              unmeasured("mi250", mib(65520), mib(520), kAmdWorkspaces)};

}  // namespace

std::span<const DeviceBudget> device_budgets() { return kBudgets; }

const DeviceBudget& device_budget(std::string_view name) {
  const auto found =
      std::find_if(kBudgets.begin(), kBudgets.end(), [&](const DeviceBudget& device) { return device.name == name; });
  if (found != kBudgets.end()) return *found;
  std::vector<std::string> known;
  for (const DeviceBudget& device : kBudgets) known.emplace_back(device.name);
  throw InputError{
      fmt::format("{}; for another device, name the one most like it, and the size of its memory with --capacity",
                  unknown_name("device", name, known))};
}

std::string device_budget_names() {
  std::string names;
  for (const DeviceBudget& device : kBudgets) names += (names.empty() ? "" : ", ") + std::string{device.name};
  return names;
}

std::string text_of(const DeviceBudget& device) {
  if (device.total == device_budget(device.name).total) return std::string{device.name};
  return fmt::format("{} with {}", device.name, to_text(device.total));
}

std::string options_of(const DeviceBudget& device) {
  const std::string options = fmt::format("--device {}", device.name);
  if (device.total == device_budget(device.name).total) return options;
  return fmt::format("{} --capacity {}B", options, device.total.count());
}

}  // namespace tidepool
