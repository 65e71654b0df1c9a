#include "simulator/engine/machine/capacity.hpp"

#include <fmt/format.h>

#include <charconv>

#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('x') && !text.ends_with('%')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, number);
  const double share = text.ends_with('%') ? number / 100 : number;
  if (error == std::errc{} && end == text.data() + text.size() - 1 && share > 0 && share < 1e6) return share;
  throw InputError{fmt::format(
      "'{}' is not a share of the peak; expected a number and x or %, above 0x and below 1000000x, as in 0.5x", text)};
}

Bytes parse_capacity(std::string_view text, Bytes ideal_peak) {
  if (text == "none") return kNoLimit;
  if (const std::optional<double> share = parse_share(text)) {
    const Bytes capacity{static_cast<std::int64_t>(static_cast<double>(ideal_peak.count()) * *share)};
    if (capacity == Bytes{} && ideal_peak > Bytes{})
      throw InputError{
          fmt::format("'{}' is less than one byte of the peak of {}; expected more", text, to_text(ideal_peak))};
    return capacity;
  }
  try {
    return parse_bytes(text);
  } catch (const InputError& error) {
    throw InputError{fmt::format("{}; or a share of the peak, as in 0.5x; or none", error.what())};
  }
}

}  // namespace tidepool
