#include "traces/base/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Unit = std::pair<std::string_view, std::int64_t>;

/// K, M, G and T are powers of 1024: other tools for GPUs and batch systems also read "16G" as 16 GiB.
constexpr std::array<Unit, 13> kSizeUnits{{{"B", 1},
                                           {"kB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000},
                                           {"KiB", 1 << 10},
                                           {"MiB", 1 << 20},
                                           {"GiB", 1 << 30},
                                           {"TiB", std::int64_t{1} << 40},
                                           {"K", 1 << 10},
                                           {"M", 1 << 20},
                                           {"G", 1 << 30},
                                           {"T", std::int64_t{1} << 40}}};
constexpr std::array<Unit, 4> kTimeUnits{{{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
constexpr std::array<Unit, 6> kRateUnits{{{"kB/s", 1'000},
                                          {"MB/s", 1'000'000},
                                          {"GB/s", 1'000'000'000},
                                          {"KiB/s", 1 << 10},
                                          {"MiB/s", 1 << 20},
                                          {"GiB/s", 1 << 30}}};

/// The scale of a unit, or 0 for an unknown one.
template <std::size_t N>
std::int64_t scale_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const auto& [unit, scale] : units)
    if (unit == name) return scale;
  return 0;
}

/// count * scale for a text "<whole number><unit>"; negative if the text has another form or the product does not fit.
template <std::size_t N>
std::int64_t parse_whole(const std::array<Unit, N>& units, std::string_view text) {
  std::int64_t count = 0, product = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::int64_t scale = scale_of(units, text.substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc{} || scale == 0 || __builtin_mul_overflow(count, scale, &product)) return -1;
  return product;
}

/// The same for a text "<decimal number>[ ]<unit>", as scaled_text() writes it; rounded down to a byte, but with the
/// unit B only whole numbers are accepted.
std::int64_t parse_size(std::string_view text) {
  if (const std::int64_t whole = parse_whole(kSizeUnits, text); whole >= 0) return whole;
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::int64_t scale = scale_of(kSizeUnits, unit);
  const double product = count * static_cast<double>(scale);
  const bool is_size = error == std::errc{} && scale != 0 && count >= 0 && product < 9e18;
  return is_size && (scale > 1 || product == std::floor(product)) ? static_cast<std::int64_t>(product) : -1;
}

template <std::size_t N>
std::string scaled_text(double value, const std::array<const char*, N>& units, double step) {
  std::size_t unit = 0;
  while ((value >= step || value <= -step) && unit + 1 < N) value /= step, ++unit;
  return unit == 0 ? fmt::format("{:.0f} {}", value, units[unit])
                   : fmt::format("{} {}", with_digits(value, 4), units[unit]);
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const std::int64_t size = parse_size(text);
  if (size < 0)
    throw InputError{fmt::format(
        "'{}' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G or T, as in 512MiB",
        text)};
  return Bytes{size};
}

Nanos parse_nanos(std::string_view text) {
  const std::int64_t time = parse_whole(kTimeUnits, text);
  if (time < 0)
    throw InputError{
        fmt::format("'{}' is not a duration; expected a whole number and ns, us, ms or s, as in 10us", text)};
  return Nanos{time};
}

BytesPerSecond parse_rate(std::string_view text) {
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::int64_t scale = scale_of(kRateUnits, text.substr(static_cast<std::size_t>(end - text.data())));
  const double rate = count * static_cast<double>(scale);
  if (error != std::errc{} || scale == 0 || !(rate >= 1) || rate > 9e18)
    throw InputError{fmt::format(
        "'{}' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s, as in 12.5GB/s", text)};
  return BytesPerSecond{static_cast<std::int64_t>(std::round(rate))};
}

std::string to_text(Bytes size) {
  return scaled_text(static_cast<double>(size.count()), std::array{"B", "KiB", "MiB", "GiB", "TiB"}, 1024);
}

std::string to_text(Nanos time) {
  return scaled_text(static_cast<double>(time.count()), std::array{"ns", "us", "ms", "s"}, 1000);
}

}  // namespace tidepool
