// Writer of pickles, byte by byte, for tests of their reader.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace tidepool::tests {

/// The opcodes that make one value. `pickle()` makes a file of them.
class Pickled {
 public:
  static Pickled none() { return raw("N"); }
  static Pickled boolean(bool value) { return raw(value ? "\x88" : "\x89"); }
  /// A number as LONG1 with eight bytes.
  static Pickled whole(std::int64_t value) {
    std::string bytes = "\x8a\x08";
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
    return raw(bytes);
  }
  /// A text of at most 255 bytes as SHORT_BINUNICODE.
  static Pickled text(std::string_view value) {
    return raw(std::string{"\x8c"} + static_cast<char>(value.size()) + std::string{value});
  }
  static Pickled list(std::initializer_list<Pickled> values) { return raw("](" + joined(values) + "e"); }
  static Pickled tuple(std::initializer_list<Pickled> values) { return raw("(" + joined(values) + "t"); }
  static Pickled dict(std::initializer_list<std::pair<std::string_view, Pickled>> entries) {
    std::string bytes = "}(";
    for (const auto& [key, value] : entries) bytes += text(key).bytes_ + value.bytes_;
    return raw(bytes + "u");
  }
  static Pickled raw(std::string bytes) {
    Pickled made;
    made.bytes_ = std::move(bytes);
    return made;
  }

  std::string pickle(int protocol = 4) const {
    return std::string{"\x80"} + static_cast<char>(protocol) + bytes_ + ".";
  }

 private:
  static std::string joined(std::initializer_list<Pickled> values) {
    std::string bytes;
    for (const Pickled& value : values) bytes += value.bytes_;
    return bytes;
  }

  std::string bytes_;
};

}  // namespace tidepool::tests
