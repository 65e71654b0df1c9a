#include "traces/export/pickle_writer.hpp"

#include <utility>

namespace tidepool {

PickleWriter::PickleWriter() : out_{"\x80\x04"} {}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::whole(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < 256) {
    out_ += 'K';
    little_endian(bits, 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    little_endian(bits, 4);
  } else {
    out_ += "\x8a\x08";
    little_endian(bits, 8);
  }
}

void PickleWriter::text(std::string_view value) {
  const auto [entry, added] = memo_.try_emplace(std::string{value}, static_cast<std::uint32_t>(memo_.size()));
  if (!added) {
    const bool one_byte = entry->second < 256;
    out_ += one_byte ? 'h' : 'j';
    little_endian(entry->second, one_byte ? 1 : 4);
    return;
  }
  const bool one_byte = value.size() < 256;
  out_ += one_byte ? '\x8c' : 'X';
  little_endian(value.size(), one_byte ? 1 : 4);
  out_ += value;
  out_ += '\x94';  // MEMOIZE
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  whole(first);
  whole(second);
  out_ += '\x86';
}

std::string PickleWriter::finish() {
  out_ += '.';
  memo_.clear();
  return std::exchange(out_, "\x80\x04");
}

}  // namespace tidepool
