#include "traces/file/columns.hpp"

#include <fmt/format.h>

#include "traces/base/error.hpp"

namespace tidepool::file {

void ColumnReader::done() const {
  if (next_ != end_) throw InputError{fmt::format("the {} frame has {} bytes too many", section_, end_ - next_)};
}

std::uint64_t ColumnReader::get_long(const char*& next, const char* what) const {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (next == end_) refuse_end(what);
    const auto byte = static_cast<unsigned char>(*next++);
    if (shift == 63 && byte > 1) break;  // the last of the 64 bits
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  throw InputError{fmt::format("the {} frame has a number of more than 64 bits in the column '{}'", section_, what)};
}

void ColumnReader::refuse_small(std::string_view bytes, const char* what, std::uint8_t most) const {
  std::size_t index = 0;
  while (static_cast<std::uint8_t>(bytes[index]) <= most) ++index;
  refuse_number(static_cast<std::uint8_t>(bytes[index]), what, index, most);
}

void ColumnReader::refuse_number(std::uint64_t bits, const char* what, std::size_t index, std::uint64_t most) const {
  throw InputError{fmt::format("{} {}: {} is {}; expected 0 to {}", record_, first_ + index, what,
                               static_cast<std::int64_t>(bits), most)};
}

void ColumnReader::refuse_end(const char* what) const {
  throw InputError{fmt::format("the {} frame ends within the column '{}'", section_, what)};
}

}  // namespace tidepool::file
