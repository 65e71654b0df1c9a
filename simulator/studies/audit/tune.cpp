#include "simulator/studies/audit/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/solvers/packing/pack.hpp"

namespace tidepool {
namespace {

/// A value of a pool's option, and the same value in PyTorch's setting; "" leaves the default.
struct Choice {
  std::string option, value;
  std::string conf;
};

const std::vector<Choice> kSplits{{"", "", ""},
                                  {"max_split_size", "512MiB", "max_split_size_mb:512"},
                                  {"max_split_size", "256MiB", "max_split_size_mb:256"},
                                  {"max_split_size", "128MiB", "max_split_size_mb:128"},
                                  {"max_split_size", "64MiB", "max_split_size_mb:64"},
                                  {"max_split_size", "32MiB", "max_split_size_mb:32"}};
const std::vector<Choice> kRoundings{{"", "", ""},
                                     {"roundup_power2_divisions", "8", "roundup_power2_divisions:8"},
                                     {"roundup_power2_divisions", "4", "roundup_power2_divisions:4"},
                                     {"roundup_power2_divisions", "2", "roundup_power2_divisions:2"}};
// The size of large segments must not be above the least max_split_size.
const std::vector<Choice> kSegments{{"", "", ""}, {"large_segment_size", "32MiB", "large_segment_size_mb:32"}};
const std::vector<Choice> kLargeSegments{{"", "", ""},
                                         {"large_segment_size", "32MiB", "large_segment_size_mb:32"},
                                         {"large_segment_size", "64MiB", "large_segment_size_mb:64"}};
const std::vector<Choice> kThresholds{{"", "", ""},
                                      {"garbage_collection_threshold", "0.8", "garbage_collection_threshold:0.8"},
                                      {"garbage_collection_threshold", "0.6", "garbage_collection_threshold:0.6"}};
const std::vector<Choice> kDefault{{"", "", ""}};

void add_all(std::vector<AllocatorSetting>& settings, const AllocatorSetting& base,
             std::span<const std::vector<Choice>> axes) {
  if (axes.empty()) {
    settings.push_back(base);
    return;
  }
  for (const Choice& choice : axes.front()) {
    AllocatorSetting next = base;
    if (!choice.option.empty()) {
      next.options[choice.option] = choice.value;
      next.conf += (next.conf.empty() ? "" : ",") + choice.conf;
    }
    add_all(settings, next, axes.subspan(1));
  }
}

}  // namespace

std::vector<AllocatorSetting> allocator_settings(bool with_threshold) {
  std::vector<AllocatorSetting> settings;
  add_all(settings, {"pytorch", {}, ""},
          std::vector<std::vector<Choice>>{kSplits, kRoundings, kSegments, with_threshold ? kThresholds : kDefault});
  add_all(settings, {"pytorch-expandable", {}, "expandable_segments:True"},
          std::vector<std::vector<Choice>>{kRoundings, kLargeSegments});
  const auto changes = [](const AllocatorSetting& setting) {
    return setting.conf.empty() ? 0 : 1 + std::count(setting.conf.begin(), setting.conf.end(), ',');
  };
  std::stable_sort(settings.begin(), settings.end(),
                   [&](const AllocatorSetting& a, const AllocatorSetting& b) { return changes(a) < changes(b); });
  return settings;
}

std::vector<TunedSetting> tune(const Trace& trace, std::span<const AllocatorSetting> settings, Bytes capacity) {
  std::vector<TunedSetting> tuned;
  for (const AllocatorSetting& setting : settings) {
    const PoolInfo& pool = find_pool(setting.pool);
    const Packing packing =
        pack(trace, pool, Options{pool.name, pool.options, setting.options}, {.capacity = capacity});
    tuned.push_back({setting, packing.outcome, packing.height, packing.message});
  }
  std::stable_sort(tuned.begin(), tuned.end(), [](const TunedSetting& a, const TunedSetting& b) {
    const bool a_fits = a.outcome == Outcome::kOk, b_fits = b.outcome == Outcome::kOk;
    return a_fits != b_fits ? a_fits : a_fits && a.reserved < b.reserved;
  });
  return tuned;
}

}  // namespace tidepool
