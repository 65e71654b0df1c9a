#include "simulator/studies/sweep/shard.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr int kMostShards = 100'000;
constexpr std::size_t kDigits = 16;  // digits of the key that decide: 64 bits

bool read(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

int shard_of(std::string_view run_key, int count) {
  std::uint64_t digits = 0;
  std::from_chars(run_key.data(), run_key.data() + std::min(run_key.size(), kDigits), digits, 16);
  return 1 + static_cast<int>(digits % static_cast<std::uint64_t>(count));
}

bool Shard::has(std::string_view run_key) const { return shard_of(run_key, count) == index; }

std::string to_text(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

Shard parse_shard(std::string_view text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !read(text.substr(0, slash), shard.index) ||
      !read(text.substr(slash + 1), shard.count) || shard.index < 1 || shard.index > shard.count ||
      shard.count > kMostShards)
    throw InputError{
        fmt::format("'{}' is not a shard; expected INDEX/COUNT, whole numbers with INDEX from 1 to COUNT and COUNT up "
                    "to {}, as in 2/8",
                    text, kMostShards)};
  return shard;
}

}  // namespace tidepool
