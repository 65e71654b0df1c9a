#include "simulator/studies/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/lifetimes.hpp"
#include "simulator/solvers/packing/pack.hpp"
#include "simulator/studies/fit/convolution_workspaces.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

constexpr Bytes kSegment{2 << 20};  // the smallest segment that PyTorch's allocator requests from the device
constexpr const char* kGarbage = "garbage_collection_threshold";
constexpr std::size_t kManyBuffers = 1'000'000;
constexpr std::int64_t kShareOfMany = 200;
constexpr int kSteps = 3;  // repetitions of a trace of one step, until the cache is as in later steps

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

/// Whether a trace without settings is of a job that had none.
bool sees_settings(const Trace& trace) {
  return sees_allocator(trace) && (meta(trace, "source") != "raw" || meta(trace, "mode").starts_with("dry run"));
}

/// kSteps repetitions of the step if the trace is one step of many, that is, it has ops and buffers from before them;
/// else none.
std::optional<Trace> repeated(const Trace& trace) {
  const bool older = std::any_of(trace.buffers().begin(), trace.buffers().end(),
                                 [](const Buffer& buffer) { return buffer.born_before; });
  if (!older || trace.ops().empty()) return {};
  return repeat_lifetimes(trace, kSteps);
}

/// Whether a job runs with some memory for its allocator.
enum class Outlook : std::uint8_t { kRuns, kDies, kUntried };

/// The allocator of a trace, replayed on devices of different size, beside what the job's own allocator stated.
class Allocator {
 public:
  /// @param stated  what the job's allocator stated under this setting; nothing for another setting
  /// @param collects_otherwise  it collects garbage at another time than it did there
  Allocator(const Trace& trace, const AllocatorOptions& setting, const StatedMemory& stated,
            bool collects_otherwise = false)
      : trace_{trace},
        info_{find_pool(setting.pool)},
        options_{setting.pool, info_.options, setting.values},
        stated_{stated},
        collects_otherwise_{collects_otherwise} {
    const Packing free = pack(trace_, info_, options_, {});
    model_ = free.height;
    load_ = free.load;
    exact_ = model_ == stated.reserved && load_ == stated.allocated && !stated.captured && !stated.gave_back &&
             !stated.ran_out && !setting.values.contains(kGarbage);
  }

  /// Most bytes reserved at once without limit.
  Bytes unlimited() const { return is_stated() ? stated_.reserved : std::max(model_, stated_.reserved); }
  Bytes load() const { return load_; }
  bool is_stated() const { return stated_.reserved > Bytes{} && stated_.allocated > Bytes{} && !stated_.ran_out; }

  /// Whether the replay gives what was stated, if anything was: else it says nothing about other settings.
  bool is_replayed() const { return !stated_.ran_out && (!is_stated() || model_ == stated_.reserved); }

  /// Most bytes reserved at once on a device with this capacity, by the model alone; none if a request fails.
  std::optional<Bytes> modelled(Bytes capacity) {
    if (model_ <= capacity) return model_;
    if (const std::optional<Bytes> height = limited(capacity)) return height;
    failed_ = std::max(failed_, capacity);
    return {};
  }

  Outlook outlook(Bytes capacity) {
    if (stated_.ran_out && stated_.failed_allocated + stated_.failed_request > capacity) return Outlook::kDies;
    if (!is_stated() || exact_) return modelled(capacity) ? Outlook::kRuns : Outlook::kDies;
    if (stated_.reserved <= capacity && !collects_otherwise_) return Outlook::kRuns;
    return stated_.allocated > capacity ? Outlook::kDies : Outlook::kUntried;
  }

  /// The bytes that the job reserves where it runs, and those that it needs where it does not.
  Bytes needs(Bytes capacity) {
    if (outlook(capacity) == Outlook::kUntried)
      return stated_.reserved > capacity ? stated_.reserved : capacity + kSegment;
    if (outlook(capacity) == Outlook::kDies) {
      if (!is_stated() || exact_) return std::max(least(), stated_.failed_allocated + stated_.failed_request);
      return std::max(stated_.allocated, stated_.held);
    }
    if (is_stated() && stated_.reserved <= capacity) return stated_.reserved;
    const Bytes height = *modelled(capacity);
    return stated_.reserved <= capacity ? std::max(height, stated_.reserved) : height;
  }

  /// The least capacity with which no request fails, exact to exactness(). It is larger than every capacity with which
  /// modelled() has failed.
  Bytes least() {
    if (least_) return *least_;
    Bytes fails = std::max(failed_, load_ - Bytes{1}), serves = model_;
    while (serves - fails > exactness()) {
      const Bytes middle = fails + (serves - fails) / 2;
      if (const std::optional<Bytes> height = limited(middle))
        serves = *height;
      else
        fails = middle;
    }
    return least_.emplace(serves);
  }

  /// Each replay of a million buffers takes seconds, so the least capacity of as many is found with few of them.
  Bytes exactness() const {
    const bool many = trace_.buffers().size() > kManyBuffers;
    return many ? std::max(kSegment, model_ / kShareOfMany) : kSegment;
  }
  bool is_rough() const { return least_ && exactness() > kSegment; }

 private:
  std::optional<Bytes> limited(Bytes capacity) const {
    if (capacity < load_ || capacity <= Bytes{}) return {};
    const Packing packing = pack(trace_, info_, options_, {.capacity = capacity});
    return packing.outcome == Outcome::kOk ? std::optional{packing.height} : std::nullopt;
  }

  const Trace& trace_;
  const PoolInfo& info_;
  const Options options_;
  const StatedMemory stated_;
  const bool collects_otherwise_;
  Bytes model_, load_, failed_;
  bool exact_ = false;  ///< the replay gives what was stated, so that it also holds for less memory
  std::optional<Bytes> least_;
};

/// Whether PyTorch's allocator collects garbage on this device at another time than where the job was recorded: as soon
/// as it has reserved a part of the job's share of the device's memory.
bool collects_otherwise(const std::optional<AllocatorOptions>& setting, const StatedMemory& stated, Bytes total) {
  if (!setting || !setting->values.contains(kGarbage) || total == stated.device_total) return false;
  const double part = std::strtod(setting->values.at(kGarbage).c_str(), nullptr) * stated.fraction;
  return static_cast<double>(stated.reserved.count()) >
         part * static_cast<double>(std::min(total, stated.device_total).count());
}

/// Fills in the results of the other setting of the allocator, and `needs` of both, so that they can be compared.
void compare(Fit& fit, Allocator& own, Allocator& other, Bytes available) {
  fit.compared = own.is_replayed();
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

bool only_infers(const Trace& trace) { return !meta(trace, "inference").empty() && failure_of(trace).empty(); }

bool lacks_training(const Trace& trace) {
  if (has_training(trace)) return false;
  if (!failure_of(trace).empty()) return true;
  return !only_infers(trace) &&
         std::any_of(trace.ops().begin(), trace.ops().end(), [](const Op& op) { return op.phase != Phase::kUnknown; });
}

std::string pool_of(const std::string& settings) {
  const std::optional<AllocatorOptions> options = allocator_options(settings);
  return options ? options->pool : "pytorch";
}

void settle(Fit& fit, bool died) {
  fit.untried.reset();
  fit.fits = !died;
  fit.source = fmt::format("as PyTorch's allocator stated; a second run of the job with this memory {}",
                           died ? "ran out of it" : "did not run out of it");
}

void widen(Fit& fit, const Fit& worst) {
  fit.worst = worst.predicted;
  fit.low = std::min(fit.low, worst.low);
  fit.high = std::max(fit.high, worst.high);
}

Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& named_pool, Bytes recorded,
                Bytes communicators) {
  require_one_memory(trace, "`fit` judges one");
  Fit fit;
  fit.device = &device;
  fit.context = device.context;
  fit.workspaces_recorded = sees_allocator(trace);
  fit.workspace = fit.workspaces_recorded ? Bytes{} : device.workspace;
  if (const Convolutions convolutions = convolutions_of(trace); convolutions.any) {
    fit.context = sum(device.context, device.cudnn);
    if (!sees_libraries(trace)) {
      fit.convolution_workspace = convolutions.largest_workspace;
      fit.doubts.emplace_back("workspaces of cuDNN are assumed");
    }
    fit.workspace += fit.convolution_workspace;
  }
  if (communicators > Bytes{}) fit.doubts.emplace_back("buffers of NCCL are assumed");
  fit.workspace += communicators;
  fit.stated = stated_memory(trace);
  if (!fit.stated.assumed.empty()) fit.doubts.emplace_back("some sizes or choices are assumed");
  const std::string own_pool = pool_of(fit.stated.settings), pool = named_pool.empty() ? own_pool : named_pool;
  const bool own_setting = pool == own_pool;
  StatedMemory known = own_setting ? fit.stated : StatedMemory{};
  if (recorded > Bytes{}) known.reserved = recorded;
  const std::optional<Trace> steps = repeated(trace);
  const Trace& replayed = steps ? *steps : trace;
  std::optional<AllocatorOptions> setting = allocator_options(fit.stated.settings);
  // PyTorch collects garbage only in a job that has limited its share of the device's memory, and by that share.
  if (setting && fit.stated.fraction == 1) setting->values.erase(kGarbage);
  Allocator own{replayed, own_setting && setting ? *setting : AllocatorOptions{pool, {}}, known,
                own_setting && collects_otherwise(setting, fit.stated, device.total)};
  const Bytes share{static_cast<std::int64_t>(fit.stated.fraction * static_cast<double>(device.total.count()))};
  const auto available = [&](Bytes context) { return std::min(device.total - context - fit.workspace, share); };
  fit.available = available(fit.context.expected);
  const Bytes more = large_workspace(fit.convolution_workspace) - fit.convolution_workspace;
  const Bytes expected = fit.available,
              low = std::max(expected, available(fit.context.low) + fit.convolution_workspace + communicators),
              high = std::min(expected, available(fit.context.high) - more);
  const Outlook outlook = own.outlook(expected);
  fit.fits = outlook == Outlook::kRuns;
  // PyTorch's own allocator has failed with no less memory, however the failure came about.
  const bool ran_out_here = fit.stated.ran_out && device.total <= fit.stated.device_total;
  if (ran_out_here) fit.fits = false;
  const bool went_on = fit.stated.failed_requests > 0 && !fit.stated.ran_out && device.total != fit.stated.device_total;
  const bool asked = fit.stated.asked_memory && !fit.stated.ran_out && device.total != fit.stated.told;
  if (went_on) fit.doubts.emplace_back("the job went on where requests had failed, and may ask for others here");
  if (asked && !went_on)
    fit.doubts.emplace_back("the job asked how much memory there is, and may take another part here");
  const bool other_allocator = own_setting && !fit.stated.replayable;
  if (other_allocator) fit.doubts.emplace_back("the job's allocator is not modelled");
  const bool is_settled = own.outlook(low) == outlook && own.outlook(high) == outlook && outlook != Outlook::kUntried &&
                          !went_on && !asked && (!other_allocator || own.load() > low);
  fit.certain = fit.stated.assumed.empty() && (ran_out_here || (is_settled && (!fit.fits || fit.doubts.empty())));
  fit.unknown_beyond = fit.fits && fit.stated.ran_out;
  const auto needs = [&](Bytes capacity) {
    return ran_out_here ? std::max(own.needs(capacity), capacity + kSegment) : own.needs(capacity);
  };
  if (outlook == Outlook::kUntried) {
    const Bytes with_share{static_cast<std::int64_t>(static_cast<double>(expected.count()) / fit.stated.fraction)};
    fit.untried = std::max(expected + fit.context.low, with_share);
  }
  fit.source = own.is_stated()            ? "as PyTorch's allocator stated in the recorded run"
               : known.reserved > Bytes{} ? "at least what was recorded; the rest by a replay"
                                          : "by a replay of the recorded requests";
  fit.reserved = needs(expected);
  fit.predicted = fit.reserved + fit.context.expected + fit.workspace;
  fit.margin = std::min(device.total - fit.predicted, share - fit.reserved);
  fit.low =
      std::min(fit.predicted, needs(low) + fit.context.low + fit.workspace - fit.convolution_workspace - communicators);
  fit.high = std::max(fit.predicted, needs(high) + fit.context.high + fit.workspace + more);
  fit.allocator = {.pool = pool, .unlimited = own.unlimited(), .needs = {}, .fits = fit.fits};
  if (trace.buffers().size() > kManyBuffers) {
    fit.compared = false;  // half of the work
  } else {
    fit.other.pool = pool == "pytorch" ? "pytorch-expandable" : "pytorch";
    Allocator other{replayed, {fit.other.pool, {}}, {}};
    compare(fit, own, other, expected);
    const bool is_known = !named_pool.empty() || !fit.stated.settings.empty() || sees_settings(trace);
    // Under no setting does a job need less than its live bytes.
    const bool is_open = fit.fits ? !other.modelled(high) : own.load() <= low;
    if (!is_known && fit.certain && is_open) {
      fit.certain = false;
      fit.doubts.emplace_back("the settings of the allocator are not recorded");
    }
  }
  fit.peak = peak_instant(trace);
  fit.holders = holders_of(trace, ModuleNames{trace}, fit.peak.buffers, 0);
  fit.notes = notes_on(trace, device);
  if (own.is_rough())
    fit.notes.push_back(fmt::format("the least memory is exact to {}, since the step has {} buffers",
                                    to_text(own.exactness()), grouped(std::ssize(trace.buffers()))));
  return fit;
}

}  // namespace tidepool
