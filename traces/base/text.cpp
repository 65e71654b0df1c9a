#include "traces/base/text.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <string>
#include <string_view>

namespace tidepool {

std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  const std::ptrdiff_t first_digit = number < 0 ? 1 : 0;
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

std::string short_number(double number) {
  constexpr std::array kUnits{"", " k", " M", " G"};
  std::size_t unit = 0;
  while (number >= 999.5 && unit + 1 < kUnits.size()) number /= 1e3, ++unit;  // 999.5 is "1 k"
  return with_digits(number, 3) + kUnits[unit];
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

bool is_utf8(const std::string& text) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return std::all_of(text.begin(), text.end(), ascii) || simdjson::validate_utf8(text.data(), text.size());
}

namespace {

/// The length of the control character at the front of a text in UTF-8, and its escape; 0: another character is there.
std::pair<std::size_t, std::string> control_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return {1, fmt::format("\\x{:02x}", byte(0))};
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return {2, fmt::format("\\x{:02x}", byte(1))};
  if (byte(0) != 0xe2 || (byte(1) != 0x80 && byte(1) != 0x81)) return {0, ""};
  const unsigned point = 0x2000 + ((byte(1) & 0x3fu) << 6) + (byte(2) & 0x3fu);
  const bool turns = point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
                     (point >= 0x2066 && point <= 0x2069);
  return turns ? std::pair{std::size_t{3}, fmt::format("\\u{:04x}", point)} : std::pair{std::size_t{0}, std::string{}};
}

}  // namespace

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool stays = rest[0] == '\n' || rest[0] == '\t';
    const std::size_t again = rest.starts_with(kLineAgain) ? kLineAgain.size() : 0;
    const auto [length, escape] = stays || again > 0 ? std::pair{std::size_t{0}, std::string{}} : control_at(rest);
    shown += length > 0 ? escape : std::string{rest.substr(0, std::max<std::size_t>(again, 1))};
    i += std::max({length, again, std::size_t{1}});
  }
  return shown;
}

std::string printable(std::string text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const auto [length, escape] = control_at(std::string_view{text}.substr(i));
    shown += length > 0 ? escape : text.substr(i, 1);
    i += std::max<std::size_t>(length, 1);
  }
  return shown;
}

void say_text(std::string_view text) noexcept {
  std::string shown;
  try {
    shown = printable_lines(text);  // names and messages of any origin are in it
    text = shown;
  } catch (const std::bad_alloc&) {  // then it is said as it is
  }
  sigset_t broken_pipe, pending, before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const bool lost = std::fwrite(text.data(), 1, text.size(), stderr) != text.size();
  constexpr timespec kNoWait{};
  if (lost && sigismember(&pending, SIGPIPE) == 0) sigtimedwait(&broken_pipe, nullptr, &kNoWait);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tidepool
