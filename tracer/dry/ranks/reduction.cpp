#include "tracer/dry/ranks/reduction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tidepool::dry {
namespace {

/// IEEE 754 binary16.
struct Half {
  std::uint16_t bits;
};
/// The upper half of an IEEE 754 binary32.
struct Bfloat {
  std::uint16_t bits;
};

double value(Half half) {
  constexpr int kBias = 15, kFraction = 10;
  const int exponent = half.bits >> kFraction & 0x1f, fraction = half.bits & 0x3ff;
  const double sign = (half.bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kFraction);
  return sign * std::ldexp(fraction + (1 << kFraction), exponent - kBias - kFraction);
}
double value(Bfloat number) { return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits) << 16); }
template <class T>
T value(T number) {
  return number;
}

template <class T>
T made_of(T number) {
  return number;
}
template <class T>
T made_of(double number) requires std::is_same_v<T, Bfloat> {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  const std::uint32_t rounding = 0x7fff + (bits >> 16 & 1);  // to the nearest, ties to even
  return {static_cast<std::uint16_t>(std::isnan(number) ? 0x7fc0 : (bits + rounding) >> 16)};
}
template <class T>
T made_of(double number) requires std::is_same_v<T, Half> {
  const int sign = std::signbit(number) ? 0x8000 : 0;
  const double size = std::fabs(number);
  constexpr double kOverflow = 65520;
  if (std::isnan(number)) return {0x7e00};
  if (size >= kOverflow) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (size < std::ldexp(1, -14))
    return {static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, 24))))};
  const int exponent = std::ilogb(size);
  const int bits = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent))) + ((exponent + 14) << 10);
  return {static_cast<std::uint16_t>(sign | bits)};
}

template <class T>
std::vector<std::byte> reduce(std::span<const std::vector<std::byte>> contributions, Reduction reduction,
                              double factor) {
  using Sum = decltype(value(T{}));
  std::vector<std::byte> result = contributions.front();
  const std::size_t count = result.size() / sizeof(T);
  const auto at = [](const std::vector<std::byte>& bytes, std::size_t i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    return value(element);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto scaled = [&](Sum number) {
      return factor == 1 ? number : static_cast<Sum>(static_cast<double>(number) * factor);
    };
    Sum total = scaled(at(contributions.front(), i));
    for (const std::vector<std::byte>& each : contributions.subspan(1)) {
      const Sum number = scaled(at(each, i));
      if (reduction == Reduction::kProduct)
        total = static_cast<Sum>(total * number);
      else if (reduction == Reduction::kMax)
        total = std::max(total, number);
      else if (reduction == Reduction::kMin)
        total = std::min(total, number);
      else
        total = static_cast<Sum>(total + number);
    }
    if (reduction == Reduction::kAverage) total = static_cast<Sum>(total / static_cast<Sum>(contributions.size()));
    const T element = made_of<T>(total);
    std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
  }
  return result;
}

/// Calls f.template operator()<T>() for the type of the elements, and `otherwise` for types that are not computed here.
template <class F, class G>
auto with_type(Element type, F&& f, G&& otherwise) {
  switch (type) {
    case Element::kInt8:
      return f.template operator()<std::int8_t>();
    case Element::kUint8:
      return f.template operator()<std::uint8_t>();
    case Element::kInt32:
      return f.template operator()<std::int32_t>();
    case Element::kUint32:
      return f.template operator()<std::uint32_t>();
    case Element::kInt64:
      return f.template operator()<std::int64_t>();
    case Element::kUint64:
      return f.template operator()<std::uint64_t>();
    case Element::kFloat16:
      return f.template operator()<Half>();
    case Element::kFloat32:
      return f.template operator()<float>();
    case Element::kFloat64:
      return f.template operator()<double>();
    case Element::kBfloat16:
      return f.template operator()<Bfloat>();
    default:
      return otherwise();
  }
}

}  // namespace

std::optional<std::size_t> element_bytes(int type) {
  static constexpr std::array<std::size_t, 12> kBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  if (type < 0 || type >= static_cast<int>(kBytes.size())) return {};
  return kBytes[static_cast<std::size_t>(type)];
}

bool is_whole(Element type) { return type <= Element::kUint64; }

std::vector<std::byte> reduced(std::span<const std::vector<std::byte>> contributions, Element type, Reduction reduction,
                               double factor) {
  return with_type(
      type, [&]<class T>() { return reduce<T>(contributions, reduction, factor); },
      [&] { return contributions.front(); });
}

double number_of(const void* element, Element type) {
  return with_type(
      type,
      [&]<class T>() {
        T number;
        std::memcpy(&number, element, sizeof number);
        return static_cast<double>(value(number));
      },
      [] { return 1.0; });
}

}  // namespace tidepool::dry
