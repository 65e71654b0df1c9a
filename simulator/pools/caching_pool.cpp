#include "simulator/pools/caching_pool.hpp"

#include <fmt/format.h>

#include <cmath>

#include "traces/error.hpp"

namespace tidepool {

std::vector<OptionInfo> caching_options() {
  return {{"max_split_size", "0B", "bytes", "blocks of this size and more are never split; 0B: no limit"},
          {"max_non_split_rounding", "20MiB", "bytes",
           "a request that is not split may get a block larger by less than this"},
          {"roundup_power2_divisions", "0", "number",
           "round requests up to this many steps between powers of two; 0: to 512 B"},
          {"garbage_collection_threshold", "0", "number",
           "fraction of the capacity above which cached segments are given back; 0: never"},
          {"large_segment_size", "20MiB", "bytes",
           "segment for requests of 1 to 10 MiB, page of large expandable segments"}};
}

CachingConfig caching_config(const std::string& owner, const Options& options, bool expandable) {
  CachingConfig config;
  const auto refuse = [&](const std::string& name, const std::string& value, const std::string& expected) {
    throw InputError{fmt::format("{}: option '{}' is {}; expected {}", owner, name, value, expected)};
  };
  config.expandable_segments = expandable;
  config.large_segment_size = options.bytes("large_segment_size");
  if (config.large_segment_size < kCachingMinLargeAlloc ||
      round_up(config.large_segment_size, kCachingRoundLarge) != config.large_segment_size)
    refuse("large_segment_size", options.word("large_segment_size"), "a multiple of 2MiB, at least 10MiB");
  config.max_non_split_rounding = options.bytes("max_non_split_rounding");
  if (const Bytes limit = options.bytes("max_split_size"); limit != Bytes{}) {
    if (limit <= config.large_segment_size)
      refuse("max_split_size", options.word("max_split_size"),
             fmt::format("0B (no limit) or more than {}", options.word("large_segment_size")));
    config.max_split_size = limit;
  }
  const double divisions = options.number("roundup_power2_divisions");
  if (divisions < 0 || divisions > 64 || std::floor(divisions) != divisions ||
      (static_cast<int>(divisions) & (static_cast<int>(divisions) - 1)) != 0)
    refuse("roundup_power2_divisions", options.word("roundup_power2_divisions"), "0 or a power of two up to 64");
  config.roundup_power2_divisions.fill(static_cast<int>(divisions));
  config.garbage_collection_threshold = options.number("garbage_collection_threshold");
  if (config.garbage_collection_threshold < 0 || config.garbage_collection_threshold >= 1)
    refuse("garbage_collection_threshold", options.word("garbage_collection_threshold"), "0 or more and less than 1");
  return config;
}

}  // namespace tidepool
