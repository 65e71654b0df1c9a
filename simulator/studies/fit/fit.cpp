#include "simulator/studies/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/pack.hpp"
#include "simulator/solvers/packing/repeat.hpp"
#include "simulator/studies/fit/convolution_workspaces.hpp"

namespace tidepool {
namespace {

constexpr Bytes kSegment{2 << 20};  // the smallest segment that PyTorch's allocator requests from the device
constexpr int kSteps = 3;           // repetitions of a trace of one step, until the cache is as in later steps

std::string_view meta(const Trace& trace, const std::string& key) {
  const auto found = trace.data().meta.find(key);
  return found == trace.data().meta.end() ? std::string_view{} : std::string_view{found->second};
}

/// Whether the trace records the allocator's own requests, and not only tensors.
bool sees_allocator(const Trace& trace) {
  const std::string_view source = meta(trace, "source");
  return source == "torch-snapshot" || source == "rmm" || (source == "raw" && meta(trace, "capture") != "torch");
}

/// Whether cuDNN's requests for memory are recorded, too. A dry run has no cuDNN.
bool sees_libraries(const Trace& trace) { return sees_allocator(trace) && !meta(trace, "mode").starts_with("dry run"); }

/// kSteps repetitions of the step if the trace is one step of many, that is, it has ops and buffers from before them;
/// else none.
std::optional<Trace> repeated(const Trace& trace) {
  const bool older = std::any_of(trace.buffers().begin(), trace.buffers().end(),
                                 [](const Buffer& buffer) { return buffer.born_before; });
  if (!older || trace.ops().empty()) return {};
  return repeat_lifetimes(trace, kSteps);
}

/// The allocator of a trace, replayed on devices of different size.
class Allocator {
 public:
  /// @param recorded  bytes that the allocator is known to have reserved; 0: not known
  Allocator(const Trace& trace, const std::string& pool, Bytes recorded)
      : trace_{trace}, info_{find_pool(pool)}, options_{pool, info_.options, {}}, recorded_{recorded} {
    const Packing free = pack(trace_, info_, options_, {});
    model_ = free.height;
    load_ = free.load;
  }

  Bytes unlimited() const { return std::max(model_, recorded_); }

  /// Most bytes reserved at once on a device with this capacity, by the model alone; none if a request fails.
  std::optional<Bytes> modelled(Bytes capacity) {
    if (model_ <= capacity) return model_;
    if (const std::optional<Bytes> height = limited(capacity)) return height;
    failed_ = std::max(failed_, capacity);
    return {};
  }

  /// modelled(), but at least the recorded bytes, unless they exceed the capacity.
  std::optional<Bytes> reserved(Bytes capacity) {
    const std::optional<Bytes> height = modelled(capacity);
    return height && recorded_ <= capacity ? std::max(*height, recorded_) : height;
  }

  /// The least capacity with which no request fails, exact to 2 MiB. It is larger than every capacity with which
  /// modelled() has failed.
  Bytes least() {
    if (least_) return *least_;
    Bytes fails = std::max(failed_, load_ - Bytes{1}), serves = model_;
    while (serves - fails > kSegment) {
      const Bytes middle = fails + (serves - fails) / 2;
      if (const std::optional<Bytes> height = limited(middle))
        serves = *height;
      else
        fails = middle;
    }
    return least_.emplace(serves);
  }

 private:
  std::optional<Bytes> limited(Bytes capacity) const {
    if (capacity < load_ || capacity <= Bytes{}) return {};
    const Packing packing = pack(trace_, info_, options_, {.capacity = capacity});
    return packing.outcome == Outcome::kOk ? std::optional{packing.height} : std::nullopt;
  }

  const Trace& trace_;
  const PoolInfo& info_;
  const Options options_;
  Bytes recorded_, model_, load_, failed_;
  std::optional<Bytes> least_;
};

/// Fills in the results of the other setting of the allocator, and `needs` of both, so that they can be compared.
void compare(Fit& fit, Allocator& own, Allocator& other, Bytes available) {
  const std::optional<Bytes> mine = own.modelled(available), others = other.modelled(available);
  fit.other.fits = others.has_value();
  fit.other.unlimited = other.unlimited();
  fit.allocator.needs = mine && others ? *mine : own.least();
  fit.other.needs = mine && others ? *others : other.least();
}

ContextRange sum(const ContextRange& a, const ContextRange& b) {
  return {a.low + b.low, a.expected + b.expected, a.high + b.high};
}

/// The workspace of convolutions by the factor kLargeConvolutionWorkspace.
/// @param expected  the workspace by the factor kConvolutionWorkspace
Bytes large_workspace(Bytes expected) {
  constexpr double kTimes = kLargeConvolutionWorkspace / kConvolutionWorkspace;
  return Bytes{static_cast<std::int64_t>(kTimes * static_cast<double>(expected.count()))};
}

/// "-nvidia-a100-sxm4-40gb-": the words of a name in lower case, with dashes around them.
std::string dashed(std::string_view name) {
  std::string words = "-";
  for (const char c : name)
    words += std::isalnum(static_cast<unsigned char>(c)) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  return words + "-";
}

/// Whether a device by this name, as in NVIDIA A100-SXM4-40GB, is of the budget's kind. The size of the memory does not
/// count.
bool is_kind_of(std::string_view name, const DeviceBudget& device) {
  std::string kind = dashed(device.name);
  if (kind.ends_with("gb-")) kind.resize(kind.rfind('-', kind.size() - 2) + 1);
  return dashed(name).find(kind) != std::string::npos;
}

std::vector<std::string> notes_on(const Trace& trace, const DeviceBudget& device) {
  std::vector<std::string> notes;
  if (!device.measured)
    notes.push_back(
        fmt::format("the context on {} is assumed, not measured; low: kernels are loaded at their first "
                    "launch; high: all kernels are loaded at the start",
                    device.name));
  const std::string_view gpu = meta(trace, "gpu");
  const bool on_cpu = gpu.empty() && meta(trace, "device") == "cpu";
  if (on_cpu || (!gpu.empty() && !is_kind_of(gpu, device)))
    notes.push_back(
        fmt::format("the trace is of a job on {}; temporary tensors and workspaces may be others on {}: "
                    "`tidepool record --dry --torch --device {}` records them",
                    on_cpu ? "the CPU" : gpu, device.name, device.name));
  return notes;
}

}  // namespace

bool has_training(const Trace& trace) {
  return std::any_of(trace.ops().begin(), trace.ops().end(),
                     [](const Op& op) { return op.phase == Phase::kBackward || op.phase == Phase::kOptimizer; });
}

std::string failure_of(const Trace& trace) { return std::string{meta(trace, "failure")}; }

bool lacks_training(const Trace& trace) {
  if (has_training(trace)) return false;
  return !failure_of(trace).empty() ||
         std::any_of(trace.ops().begin(), trace.ops().end(), [](const Op& op) { return op.phase != Phase::kUnknown; });
}

Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& pool, Bytes recorded) {
  require_one_memory(trace, "`fit` judges one");
  Fit fit;
  fit.device = &device;
  fit.context = device.context;
  fit.workspaces_recorded = sees_allocator(trace);
  fit.workspace = fit.workspaces_recorded ? Bytes{} : device.workspace;
  if (const Convolutions convolutions = convolutions_of(trace); convolutions.any) {
    fit.context = sum(device.context, device.cudnn);
    if (!sees_libraries(trace)) fit.convolution_workspace = convolutions.largest_workspace;
    fit.workspace += fit.convolution_workspace;
  }
  const std::optional<Trace> steps = repeated(trace);
  Allocator own{steps ? *steps : trace, pool, recorded};
  const auto available = [&](Bytes context) { return device.total - context - fit.workspace; };
  const Bytes without = available(fit.context.low) + fit.convolution_workspace;
  const Bytes more = large_workspace(fit.convolution_workspace) - fit.convolution_workspace;
  const std::optional<Bytes> reserved = own.reserved(available(fit.context.expected)),
                             reserved_low = own.reserved(without),
                             reserved_high = own.reserved(available(fit.context.high) - more);
  const auto needed = [&](const std::optional<Bytes>& most) { return most ? *most : own.least(); };
  fit.fits = reserved.has_value();
  fit.certain = reserved_low.has_value() == fit.fits && reserved_high.has_value() == fit.fits;
  fit.reserved = needed(reserved);
  fit.predicted = fit.reserved + fit.context.expected + fit.workspace;
  fit.low = std::min(fit.predicted, needed(reserved_low) + device.total - without);
  fit.high = std::max(fit.predicted, needed(reserved_high) + fit.context.high + fit.workspace + more);
  fit.allocator = {.pool = pool, .unlimited = own.unlimited(), .needs = {}, .fits = fit.fits};
  fit.other.pool = pool == "pytorch" ? "pytorch-expandable" : "pytorch";
  Allocator other{steps ? *steps : trace, fit.other.pool, {}};
  compare(fit, own, other, available(fit.context.expected));
  fit.peak = peak_instant(trace);
  fit.holders = holders_of(trace, ModuleNames{trace}, fit.peak.buffers, 0);
  fit.notes = notes_on(trace, device);
  return fit;
}

}  // namespace tidepool
