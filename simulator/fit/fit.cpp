#include "simulator/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "simulator/packing/pack.hpp"
#include "simulator/packing/repeat.hpp"
#include "simulator/registry.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr int kSteps = 3;  // of a trace of one step: the cache of the first is not yet that of the later ones

std::string_view meta(const Trace& trace, const std::string& key) {
  const auto found = trace.data().meta.find(key);
  return found == trace.data().meta.end() ? std::string_view{} : std::string_view{found->second};
}

/// Whether PyTorch's allocator was seen itself, and not only its tensors.
bool sees_allocator(const Trace& trace) {
  const std::string_view source = meta(trace, "source");
  return source == "torch-snapshot" || source == "rmm" || (source == "raw" && meta(trace, "capture") != "torch");
}

/// What the allocator places: the step again and again if it is one of many.
std::optional<Trace> repeated(const Trace& trace) {
  const bool older = std::any_of(trace.buffers().begin(), trace.buffers().end(),
                                 [](const Buffer& buffer) { return buffer.born_before; });
  if (!older || trace.ops().empty()) return {};
  return repeat_lifetimes(trace, kSteps);
}

AllocatorFit replay(const Trace& trace, const std::string& pool, Bytes available) {
  const PoolInfo& info = find_pool(pool);
  const Options options{pool, info.options, {}};
  const Packing free = pack(trace, info, options, {});
  AllocatorFit fit{
      .pool = pool, .reserved = free.height, .unlimited = free.height, .fits = free.height <= available, .message = ""};
  if (fit.fits) return fit;
  if (available <= Bytes{}) return fit;
  const Packing limited = pack(trace, info, options, {.capacity = available});
  fit.fits = limited.outcome == Outcome::kOk;
  if (fit.fits) fit.reserved = limited.height;
  fit.message = limited.message;
  return fit;
}

std::vector<std::string> notes_on(const Trace& trace, const DeviceBudget& device) {
  std::vector<std::string> notes;
  const bool convolves = std::any_of(trace.ops().begin(), trace.ops().end(), [&](const Op& op) {
    const std::string_view name = trace.text(op.name);
    return name.find("onvolution") != std::string_view::npos || name.find("aten::conv") != std::string_view::npos;
  });
  if (convolves && meta(trace, "capture") != "cupti+torch" && meta(trace, "source") != "torch-snapshot")
    notes.emplace_back("workspaces of cuDNN's convolutions are not recorded; they come on top");
  if (!device.measured)
    notes.push_back(
        fmt::format("the context on {} is assumed, not measured; low and high are where kernels are loaded "
                    "when they are launched, and all at the start",
                    device.name));
  return notes;
}

}  // namespace

Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& pool) {
  std::set<std::uint16_t> devices;
  for (const Buffer& buffer : trace.buffers()) devices.insert(buffer.device);
  if (devices.size() > 1)
    throw InputError{fmt::format("the trace is of {} devices; expected one, as `fit` judges one", devices.size())};
  Fit fit;
  fit.device = &device;
  fit.workspaces_recorded = sees_allocator(trace);
  fit.workspace = fit.workspaces_recorded ? Bytes{} : device.workspace;
  const std::optional<Trace> steps = repeated(trace);
  const Bytes available = device.total - device.context - fit.workspace;
  fit.allocator = replay(steps ? *steps : trace, pool, available);
  fit.other = replay(steps ? *steps : trace, pool == "pytorch" ? "pytorch-expandable" : "pytorch", available);
  fit.fits = fit.allocator.fits;
  fit.reserved = fit.allocator.reserved;
  fit.predicted = fit.reserved + device.context + fit.workspace;
  fit.low = fit.reserved + device.context_low + fit.workspace;
  fit.high = fit.reserved + device.context_high + fit.workspace;
  fit.peak = peak_instant(trace);
  fit.holders = holders_of(trace, ModuleNames{trace}, fit.peak.buffers, 0);
  fit.notes = notes_on(trace, device);
  return fit;
}

}  // namespace tidepool
