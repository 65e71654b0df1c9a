#include "traces/import/tar.hpp"

#include <charconv>
#include <optional>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kBlock = 512;

/// Offsets and sizes of the fields of a header.
constexpr std::size_t kName = 0, kNameSize = 100, kSize = 124, kSizeSize = 12, kChecksum = 148, kChecksumSize = 8;
constexpr std::size_t kKind = 156, kMagic = 257, kPrefix = 345, kPrefixSize = 155;

/// A field up to its first zero.
std::string_view field(std::string_view header, std::size_t first, std::size_t size) {
  const std::string_view all = header.substr(first, size);
  return all.substr(0, all.find('\0'));
}

/// A number of a header: octal digits or, as GNU tar writes large ones, 0x80 and the number in base 256.
std::optional<std::size_t> field_number(std::string_view header, std::size_t offset, std::size_t bytes) {
  std::size_t value = 0;
  if (header[offset] == '\x80') {
    for (const char c : header.substr(offset + 1, bytes - 1)) {
      if (value >> 56 != 0) return {};
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::string_view text = field(header, offset, bytes);
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value, 8);
  if (error != std::errc{}) return {};
  return value;
}

/// The sum of a header's bytes, with a blank for each byte of the checksum field.
std::size_t checksum(std::string_view header) {
  std::size_t sum = kChecksumSize * ' ';
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < kChecksum || i >= kChecksum + kChecksumSize) sum += static_cast<unsigned char>(header[i]);
  return sum;
}

/// What an extended header says about the file of the next header. Its fields are too small for it.
struct Extended {
  std::optional<std::string_view> name;
  std::optional<std::size_t> size;
};

/// Reads a pax header: records as in "20 path=runs/0.json\n", each of which begins with its length.
/// @return  whether all have this form
bool read_pax(std::string_view records, Extended& next) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    if (error != std::errc{} || length < digits + 2 || length > records.size() || records[digits] != ' ') return false;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);  // without blank and line end
    if (record.starts_with("path=")) next.name = record.substr(5);
    if (record.starts_with("size=")) {
      const std::optional<std::int64_t> size = parse_whole(record.substr(5));
      if (!size || *size < 0) return false;
      next.size = static_cast<std::size_t>(*size);
    }
    records.remove_prefix(length);
  }
  return true;
}

/// The name in a header. GNU tar, which writes "ustar " there, has no prefix.
std::string name_in(std::string_view header) {
  const bool prefixed = header[kMagic + 5] == '\0';
  const std::string_view prefix = prefixed ? field(header, kPrefix, kPrefixSize) : "";
  return fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", field(header, kName, kNameSize));
}

}  // namespace

bool is_tar(std::string_view head) { return head.size() >= kBlock && head.substr(kMagic, 5) == "ustar"; }

std::vector<TarFile> tar_files(const Input& archive) {
  const std::string_view all = archive.bytes();
  std::vector<TarFile> files;
  Extended next;
  for (std::size_t at = 0;;) {
    if (at + kBlock > all.size())
      refuse("{}:byte {}: the archive ends early; expected a complete tar archive", archive.path(), at);
    if (all[at] == '\0') return files;
    const std::string_view header = all.substr(at, kBlock);
    if (field_number(header, kChecksum, kChecksumSize) != checksum(header))
      refuse("{}:byte {}: a header with a wrong checksum; expected a complete tar archive", archive.path(), at);
    const char kind = header[kKind];
    const bool extends = kind == 'x' || kind == 'g' || kind == 'L' || kind == 'K';
    const std::optional<std::size_t> size = !extends && next.size ? next.size : field_number(header, kSize, kSizeSize);
    if (!size || *size > all.size() - at - kBlock)
      refuse("{}:byte {}: the archive ends early; expected a complete tar archive", archive.path(), at);
    const std::string_view content = all.substr(at + kBlock, *size);
    if (kind == 'L') next.name = content.substr(0, content.find('\0'));
    if (kind == 'x' && !read_pax(content, next))
      refuse("{}:byte {}: a damaged pax header; expected a complete tar archive", archive.path(), at);
    if (kind == '0' || kind == '\0') files.push_back({next.name ? std::string{*next.name} : name_in(header), content});
    if (!extends) next = {};
    at += kBlock + (*size + kBlock - 1) / kBlock * kBlock;
  }
}

}  // namespace tidepool
