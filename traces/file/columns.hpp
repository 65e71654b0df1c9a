// Columns: a column holds one field of consecutive records, as bytes, numbers or differences. The writer and the reader
// have the same functions, so that each section is described once for both (traces/file/sections.hpp).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool::file {

constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (std::uint64_t{0} - (difference >> 63));
}
constexpr std::uint64_t unzigzag(std::uint64_t value) { return (value >> 1) ^ (std::uint64_t{0} - (value & 1)); }

template <class Tag>
std::uint64_t to_bits(Quantity<Tag> value) {
  return static_cast<std::uint64_t>(value.count());
}
template <class Tag>
std::uint64_t to_bits(Id<Tag> value) {
  return value.value();
}
template <class Integer>
requires std::is_integral_v<Integer> std::uint64_t to_bits(Integer value) { return static_cast<std::uint64_t>(value); }

/// Appends columns to a text of bytes. `first` is the number of the first record.
class ColumnWriter {
 public:
  ColumnWriter(std::string& out, std::size_t first) : out_{out}, first_{first} {}

  /// One byte for each record: an enum or a bool.
  template <class Records, class Field>
  void small(const char*, std::uint8_t, const Records& records, Field field) {
    for (const auto& record : records) out_ += static_cast<char>(field(record));
  }
  /// A number that is rarely negative (LEB128).
  template <class Records, class Field>
  void number(const char*, const Records& records, Field field) {
    for (const auto& record : records) put(to_bits(field(record)));
  }
  /// The difference to the previous record with the field (zigzag LEB128), for the records with the field: those with
  /// has(record).
  template <class Records, class Has, class Field>
  void delta_if(const char*, const Records& records, Has has, Field field) {
    std::uint64_t last = 0;
    for (const auto& record : records)
      if (has(record)) {
        const std::uint64_t bits = to_bits(field(record));
        put(zigzag(bits - last));
        last = bits;
      }
  }
  template <class Records, class Field>
  void delta(const char* what, const Records& records, Field field) {
    delta_if(
        what, records, [](const auto&) { return true; }, field);
  }
  /// The distance to an earlier record of the same kind; 0 = there is none.
  template <class Records, class Field>
  void distance(const char*, const Records& records, Field field) {
    std::size_t own = first_;
    for (const auto& record : records) {
      put(field(record).valid() ? own - field(record).index() : 0);
      ++own;
    }
  }
  /// The length of the range [begin, end).
  template <class Records, class Begin, class End>
  void length(const char*, const Records& records, Begin begin, End end) {
    for (const auto& record : records) put(end(record) - begin(record));
  }
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

 private:
  std::string& out_;
  std::size_t first_;
};

/// Takes columns off the bytes of one frame. Errors are InputErrors without the position of the frame, as in
/// "op 388: kind is 9; expected 0 to 5" and "the ops frame ends within the column 'kind'".
class ColumnReader {
 public:
  /// @param section  for messages, as in "ops"
  /// @param record   the name of one record, as in "op"
  /// @param first    number of the frame's first record
  ColumnReader(std::string_view bytes, std::string_view section, std::string_view record, std::size_t first)
      : next_{bytes.data()}, end_{bytes.data() + bytes.size()}, section_{section}, record_{record}, first_{first} {}

  template <class Records, class Field>
  void small(const char* what, std::uint8_t most, Records records, Field field) {
    const std::string_view bytes = take(records.size(), what);
    std::uint8_t largest = 0;
    for (const char byte : bytes)
      largest = static_cast<std::uint8_t>(byte) > largest ? static_cast<std::uint8_t>(byte) : largest;
    if (largest > most) refuse_small(bytes, what, most);
    for (std::size_t i = 0; i < records.size(); ++i) {
      auto& value = field(records[i]);
      value = static_cast<std::remove_reference_t<decltype(value)>>(bytes[i]);
    }
  }
  template <class Records, class Field>
  void number(const char* what, Records records, Field field) {
    const char* next = next_;
    for (std::size_t i = 0; i < records.size(); ++i) set(field(records[i]), get(next, what), what, i);
    next_ = next;
  }
  template <class Records, class Has, class Field>
  void delta_if(const char* what, Records records, Has has, Field field) {
    const char* next = next_;
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < records.size(); ++i)
      if (has(records[i])) set(field(records[i]), last += unzigzag(get(next, what)), what, i);
    next_ = next;
  }
  template <class Records, class Field>
  void delta(const char* what, Records records, Field field) {
    delta_if(
        what, records, [](const auto&) { return true; }, field);
  }
  template <class Records, class Field>
  void distance(const char* what, Records records, Field field) {
    using Reference = std::remove_reference_t<decltype(field(records[0]))>;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::uint64_t back = get(next_, what);
      if (back > first_ + i) refuse_number(back, what, i, first_ + i);
      field(records[i]) = back == 0 ? Reference{} : Reference{first_ + i - back};
    }
  }
  /// Sets `begin` to 0 and `end` to the length: the position of the range depends on the frames before.
  template <class Records, class Begin, class End>
  void length(const char* what, Records records, Begin begin, End end) {
    number(what, records, end);
    for (auto& record : records) begin(record) = 0;
  }
  /// The next number (LEB128).
  std::uint64_t get(const char* what) { return get(next_, what); }
  /// The next `size` bytes as they are.
  std::string_view take(std::size_t size, const char* what) {
    if (size > static_cast<std::size_t>(end_ - next_)) refuse_end(what);
    next_ += size;
    return {next_ - size, size};
  }
  /// Refuses bytes that no column took.
  void done() const;

 private:
  std::uint64_t get(const char*& next, const char* what) const {
    if (next != end_ && static_cast<unsigned char>(*next) < 0x80) return static_cast<unsigned char>(*next++);
    return get_long(next, what);
  }
  std::uint64_t get_long(const char*& next, const char* what) const;

  template <class Tag>
  void set(Quantity<Tag>& value, std::uint64_t bits, const char*, std::size_t) const {
    value = Quantity<Tag>{static_cast<std::int64_t>(bits)};
  }
  template <class Tag>
  void set(Id<Tag>& value, std::uint64_t bits, const char* what, std::size_t index) const {
    if (bits >= std::numeric_limits<std::uint32_t>::max()) refuse_number(bits, what, index, kMostId);
    value = Id<Tag>{bits};
  }
  template <class Integer>
  requires std::is_integral_v<Integer>
  void set(Integer& value, std::uint64_t bits, const char* what, std::size_t index) const {
    if constexpr (sizeof(Integer) == 4) {
      if (bits > kMostId) refuse_number(bits, what, index, kMostId);
    } else if constexpr (sizeof(Integer) < 4) {
      if (bits > std::numeric_limits<Integer>::max())
        refuse_number(bits, what, index, std::numeric_limits<Integer>::max());
    }
    value = static_cast<Integer>(bits);
  }

  static constexpr std::uint64_t kMostId = std::numeric_limits<std::uint32_t>::max() - std::uint64_t{1};

  [[noreturn]] void refuse_small(std::string_view bytes, const char* what, std::uint8_t most) const;
  [[noreturn]] void refuse_number(std::uint64_t bits, const char* what, std::size_t index, std::uint64_t most) const;
  [[noreturn]] void refuse_end(const char* what) const;

  const char* next_;
  const char* end_;
  std::string_view section_, record_;
  std::size_t first_;
};

}  // namespace tidepool::file
