#include "simulator/engine/pools/caching_pool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <charconv>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr Bytes kMebibyte{1 << 20};
constexpr Bytes kPage{2 << 20};  // devices map multiples of this size
constexpr std::uint64_t kMostDivisions = 1u << 30;

/// Reads the settings of one pool; refuses values that PyTorch refuses.
class Reader {
 public:
  Reader(std::string owner, const Options& options) : owner_{std::move(owner)}, options_{options} {}

  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const {
    throw InputError{fmt::format("{}: option '{}' is {}; expected {}", owner_, name, options_.word(name), expected)};
  }

  /// Reads a size in whole MiB of at least `least`. @param unset  meaning of 0B, for messages; "" if 0B is not allowed
  Bytes mebibytes(const std::string& name, Bytes least, const std::string& unset) const {
    const Bytes size = options_.bytes(name);
    if (size == Bytes{} && !unset.empty()) return size;
    if (size < least || round_up(size, kMebibyte) != size)
      refuse(name, fmt::format("{}{}MiB or more, in whole MiB", unset.empty() ? "" : fmt::format("0B ({}) or ", unset),
                               least / kMebibyte));
    return size;
  }

  /// Reads "4" for all sizes, or "[256:1,512:2,>:4]": 1 from 256 MiB on, 2 from 512 MiB on, and 4 from twice the last
  /// size (1 GiB) on. Sizes below the first size have its divisions.
  std::array<int, 16> divisions(const std::string& name) const {
    const std::string& text = options_.word(name);
    std::array<int, 16> divisions{};
    if (text.empty() || text.front() != '[' || text.back() != ']') {
      divisions.fill(static_cast<int>(power_of_two(name, text, true)));
      return divisions;
    }
    std::size_t last = 0;
    bool first = true;
    for (const std::string& part : split_list(std::string_view{text}.substr(1, text.size() - 2))) {
      const std::size_t colon = part.find(':');
      if (colon == std::string::npos) refuse(name, kExpected);
      const std::string size = part.substr(0, colon);
      const int value = static_cast<int>(power_of_two(name, part.substr(colon + 1), true));
      if (size == ">") {
        std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions.end(), value);
        continue;
      }
      last = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(power_of_two(name, size, false))),
                                   divisions.size() - 1);
      if (std::exchange(first, false)) std::fill_n(divisions.begin(), last, value);
      divisions[last] = value;
    }
    return divisions;
  }

 private:
  static constexpr const char* kExpected =
      "0, a power of two up to 2^30, or a list of sizes in MiB with such a number each, as in [256:1,512:2,>:4]";

  std::uint64_t power_of_two(const std::string& name, std::string_view text, bool or_none) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > kMostDivisions ||
        !(std::has_single_bit(value) || (or_none && value == 0)))
      refuse(name, kExpected);
    return value;
  }

  std::string owner_;
  const Options& options_;
};

}  // namespace

std::vector<OptionInfo> caching_options() {
  return {
      {"max_split_size", "0B", "bytes", "blocks of this size and more are never split; 0B: no limit"},
      {"max_non_split_rounding", "0B", "bytes",
       "a request that is not split may get a block larger by less than this; 0B: large_segment_size"},
      {"roundup_power2_divisions", "0", "text",
       "round requests up to this many steps between powers of two; 0: to 512 B; by size in MiB: [256:1,512:2,>:4]"},
      {"garbage_collection_threshold", "0", "number",
       "fraction of the capacity above which cached segments are given back; 0: never"},
      {"large_segment_size", "20MiB", "bytes",
       "segment for requests of 1 to 10 MiB, page of large expandable segments"}};
}

CachingConfig caching_config(const std::string& owner, const Options& options, bool expandable) {
  const Reader reader{owner, options};
  CachingConfig config;
  config.expandable_segments = expandable;
  config.large_segment_size = reader.mebibytes("large_segment_size", kCachingMinLargeAlloc + kMebibyte, "");
  if (expandable && round_up(config.large_segment_size, kPage) != config.large_segment_size)
    reader.refuse("large_segment_size", "a multiple of 2MiB, which is what the device maps at once");
  const Bytes limit = reader.mebibytes("max_split_size", config.large_segment_size, "no limit");
  if (limit != Bytes{}) config.max_split_size = limit;
  const Bytes rounding = reader.mebibytes("max_non_split_rounding", config.large_segment_size, "large_segment_size");
  config.max_non_split_rounding = rounding != Bytes{} ? rounding : config.large_segment_size;
  config.roundup_power2_divisions = reader.divisions("roundup_power2_divisions");
  config.garbage_collection_threshold = options.number("garbage_collection_threshold");
  if (config.garbage_collection_threshold < 0 || config.garbage_collection_threshold >= 1)
    reader.refuse("garbage_collection_threshold", "0 or more and less than 1");
  return config;
}

std::string caching_conf(const Options& options, bool expandable) {
  std::vector<std::string> settings;
  if (expandable) settings.emplace_back("expandable_segments:True");
  for (const OptionInfo& option : caching_options()) {
    const std::string& value = options.word(option.name);
    if (value == option.default_value) continue;
    settings.push_back(option.unit == "bytes"
                           ? fmt::format("{}_mb:{}", option.name, options.bytes(option.name) / kMebibyte)
                           : fmt::format("{}:{}", option.name, value));
  }
  return fmt::format("{}", fmt::join(settings, ","));
}

}  // namespace tidepool
