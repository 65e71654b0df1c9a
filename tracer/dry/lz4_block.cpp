#include "tracer/dry/lz4_block.hpp"

#include <cstdint>

namespace tidepool::dry {
namespace {

class Block {
 public:
  explicit Block(std::span<const std::byte> bytes) : left_{bytes} {}

  bool empty() const { return left_.empty(); }
  std::size_t byte() {
    if (left_.empty()) return broken_ = true, 0;
    const auto value = std::to_integer<std::size_t>(left_.front());
    left_ = left_.subspan(1);
    return value;
  }
  /// A length whose first four bits are `begun`. If these are 15, the next bytes are added, up to and including the
  /// first one below 255.
  std::size_t length(std::size_t begun) {
    constexpr std::size_t kMore = 15, kGoesOn = 255;
    if (begun < kMore) return begun;
    for (std::size_t next = kGoesOn; next == kGoesOn; begun += next) next = byte();
    return begun;
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > left_.size()) return broken_ = true, std::span<const std::byte>{};
    const std::span taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  bool broken() const { return broken_; }

 private:
  std::span<const std::byte> left_;
  bool broken_ = false;
};

}  // namespace

std::vector<std::byte> unpack_lz4_block(std::span<const std::byte> block, std::size_t bytes) {
  constexpr std::size_t kShortestMatch = 4;
  std::vector<std::byte> unpacked;
  unpacked.reserve(bytes);
  for (Block rest{block}; !rest.empty();) {
    const std::size_t token = rest.byte();
    const std::span literals = rest.take(rest.length(token >> 4));
    if (rest.broken() || literals.size() > bytes - unpacked.size()) return {};
    unpacked.insert(unpacked.end(), literals.begin(), literals.end());
    if (rest.empty()) break;  // the last sequence has no match
    const std::size_t low = rest.byte(), distance = low | rest.byte() << 8;
    const std::size_t count = rest.length(token & 0xf) + kShortestMatch;
    if (rest.broken() || distance == 0 || distance > unpacked.size() || count > bytes - unpacked.size()) return {};
    for (std::size_t i = 0; i < count; ++i) unpacked.push_back(unpacked[unpacked.size() - distance]);
  }
  return unpacked.size() == bytes ? unpacked : std::vector<std::byte>{};
}

}  // namespace tidepool::dry
