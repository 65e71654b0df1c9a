#include "tracer/raw/reader.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <simdjson.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "tracer/raw/fields.hpp"
#include "traces/base/error.hpp"
#include "traces/names.hpp"

namespace tidepool::raw {
namespace {

/// Reads a file in the binary form. A cut-off end, as of a killed job, is a loss; damage anywhere else is an error.
class ChunkReader {
 public:
  explicit ChunkReader(const Input& input) : input_{input}, rest_{input.bytes()} {}

  Log run() {
    log_.path = input_.path();
    read_header();
    while (!rest_.empty() && read_chunk()) ++number_;
    log_.cut_off_bytes = rest_.size();
    return std::move(log_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{
        fmt::format("{} (chunk {}): {}", input_.path(), number_, fmt::format(text, std::forward<Args>(args)...))};
  }

  void read_header() {
    if (rest_.size() < sizeof(FileHeader))
      throw InputError{fmt::format("{}: {} bytes; expected the {} of the header of a raw capture file", input_.path(),
                                   rest_.size(), sizeof(FileHeader))};
    std::memcpy(&log_.header, rest_.data(), sizeof(FileHeader));
    if (std::memcmp(log_.header.magic, kMagic, sizeof kMagic) != 0)
      throw InputError{input_.path() + ": does not begin as a raw capture file does"};
    if (log_.header.version != kFormatVersion)
      throw InputError{fmt::format("{}: format version {}; this tidepool reads version {}", input_.path(),
                                   log_.header.version, kFormatVersion)};
    if (log_.header.bytes < sizeof(FileHeader) || log_.header.bytes > rest_.size())
      throw InputError{fmt::format("{}: a header of {} bytes; expected {} to {}", input_.path(), log_.header.bytes,
                                   sizeof(FileHeader), rest_.size())};
    check("source", log_.header.source);
    check("clock", log_.header.clock);
    rest_.remove_prefix(log_.header.bytes);
  }

  /// @return false if the file is cut off here
  bool read_chunk() {
    ChunkHeader header;
    if (rest_.size() < sizeof header) return false;
    std::memcpy(&header, rest_.data(), sizeof header);
    const auto sum = static_cast<std::uint32_t>(XXH3_64bits(rest_.data(), sizeof header - 4));
    if (header.mark != kChunkMark || header.header_checksum != sum) {
      // After a power failure, a file system may have zeros in the place of the last chunks.
      if (rest_.find_first_not_of('\0') == std::string_view::npos) return false;
      if (header.mark != kChunkMark) refuse("{:#010x} where it begins; expected {:#010x}", header.mark, kChunkMark);
      refuse("its header has checksum {:08x}; the file says {:08x}", sum, header.header_checksum);
    }
    if (header.bytes > kMostChunk) refuse("{} bytes; expected at most {}", header.bytes, kMostChunk);
    if (header.stored > rest_.size() - sizeof header) return false;
    const std::string_view stored = rest_.substr(sizeof header, header.stored);
    const std::uint64_t checksum = XXH3_64bits(stored.data(), stored.size());
    const bool last = rest_.size() == sizeof header + header.stored;
    if (checksum != header.checksum && last) return false;
    if (checksum != header.checksum) refuse("checksum {:016x}; the file says {:016x}", checksum, header.checksum);
    read_records(unpack(header, stored), header.records);
    rest_.remove_prefix(sizeof header + header.stored);
    return true;
  }

  std::string_view unpack(const ChunkHeader& header, std::string_view stored) {
    if (header.packing == Packing::kPlain) {
      if (header.bytes != header.stored)
        refuse("{} bytes that take {}; expected as many, since they are not packed", header.bytes, header.stored);
      return stored;
    }
    if (header.packing != Packing::kZstd)
      refuse("packing {}; expected 0 (plain) or 1 (zstd)", static_cast<std::uint32_t>(header.packing));
    if (unpacked_.size() < header.bytes) unpacked_.resize(header.bytes);
    const std::size_t size = ZSTD_decompress(unpacked_.data(), header.bytes, stored.data(), stored.size());
    if (ZSTD_isError(size)) refuse("zstd data is damaged ({})", ZSTD_getErrorName(size));
    if (size != header.bytes) refuse("{} bytes when unpacked; its header says {}", size, header.bytes);
    return std::string_view{unpacked_}.substr(0, size);
  }

  void read_records(std::string_view bytes, std::uint32_t expected) {
    std::uint32_t records = 0;
    for (; !bytes.empty(); ++records) {
      record_ = records;
      Head head;
      if (bytes.size() < sizeof head) refuse_record("{} bytes left; expected a record's head", bytes.size());
      std::memcpy(&head, bytes.data(), sizeof head);
      if (head.bytes > bytes.size() || head.bytes % 8 != 0 || head.bytes < sizeof head + head.fixed)
        refuse_record("{} bytes, {} of them fixed; expected a multiple of 8, at least 8 more than fixed and at most {}",
                      head.bytes, head.fixed, bytes.size());
      take(head, bytes.substr(sizeof head, head.fixed),
           bytes.substr(sizeof head + head.fixed, head.bytes - head.fixed - sizeof head));
      bytes.remove_prefix(head.bytes);
    }
    if (records != expected) refuse("{} records; its header says {}", records, expected);
  }

  template <class... Args>
  [[noreturn]] void refuse_record(fmt::format_string<Args...> text, Args&&... args) const {
    refuse("record {}: {}", record_, fmt::format(text, std::forward<Args>(args)...));
  }

  void take(const Head& head, std::string_view fixed, std::string_view tail) {
    if (head.kind == Kind::kString) return take_text(copy_of<String>(fixed), tail);
    bool known = false;
    each_kind([&]<class Record>(const char*) {
      if (head.kind != Record::kKind) return;
      known = true;
      Record record = copy_of<Record>(fixed);
      if constexpr (requires { record.uses; }) take_uses(record.uses, tail);
      fields(record, [&](const char* name, auto& field) {
        if constexpr (std::is_enum_v<std::remove_reference_t<decltype(field)>>) check(name, field);
      });
      log_.add(record);
    });
    if (!known) ++log_.unknown_records;
  }

  /// Copies the fixed part of a record. The recorder may be older or newer than this reader: fields that it did not
  /// write keep their defaults, and fields that this reader does not know are left out.
  template <class Record>
  Record copy_of(std::string_view fixed) const {
    Record record;
    std::memcpy(static_cast<void*>(&record), fixed.data(), std::min(fixed.size(), sizeof record));
    return record;
  }

  /// Changes an unknown enumeration value, as from a later version, to the first value, mostly kUnknown.
  /// @throws InputError  for the number of a text that no earlier record has defined
  template <class Enum>
  void check(const char* name, Enum& value) const {
    if constexpr (std::is_same_v<Enum, Text>) {
      if (static_cast<std::size_t>(value) >= log_.texts.size())
        refuse_record("\"{}\" is text {}; expected one of the {} before it", name, static_cast<std::uint32_t>(value),
                      log_.texts.size());
    } else if (static_cast<std::size_t>(value) >= words<Enum>().size()) {
      value = Enum{};
    }
  }

  void take_text(const String& string, std::string_view tail) {
    const auto id = static_cast<std::size_t>(string.id);
    if (id != log_.texts.size()) refuse_record("text {}; expected {}", id, log_.texts.size());
    if (string.length > tail.size()) refuse_record("a text of {} bytes; the record has {}", string.length, tail.size());
    std::string& text = log_.texts.emplace_back(tail.substr(0, string.length));
    if (!simdjson::validate_utf8(text))  // possible in a name that the job chose
      std::replace_if(
          text.begin(), text.end(), [](unsigned char byte) { return byte >= 0x80; }, '?');
  }

  void take_uses(std::uint32_t count, std::string_view tail) {
    if (count > tail.size() / sizeof(BufferUse))
      refuse_record("{} uses; the record has room for {}", count, tail.size() / sizeof(BufferUse));
    for (std::uint32_t i = 0; i < count; ++i) {
      log_.uses.push_back(copy_of<BufferUse>(tail.substr(i * sizeof(BufferUse), sizeof(BufferUse))));
      fields(log_.uses.back(), [&](const char* name, auto& field) {
        if constexpr (std::is_enum_v<std::remove_reference_t<decltype(field)>>) check(name, field);
      });
    }
  }

  const Input& input_;
  std::string_view rest_;
  std::size_t number_ = 0;
  std::uint32_t record_ = 0;
  Log log_;
  std::string unpacked_;
};

}  // namespace

bool looks_raw(std::string_view head) {
  return head.starts_with(std::string_view{kMagic, sizeof kMagic}) || looks_raw_json(head);
}

bool has_header(std::string_view bytes) {
  return looks_raw_json(bytes) ? bytes.find('\n') != std::string_view::npos : bytes.size() >= sizeof(FileHeader);
}

Log read_raw(const Input& input) {
  if (looks_raw_json(input.bytes())) return read_raw_json(input);
  return ChunkReader{input}.run();
}

}  // namespace tidepool::raw
