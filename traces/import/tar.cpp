#include "traces/import/tar.hpp"

#include <charconv>
#include <optional>

#include "traces/lines.hpp"
#include "traces/refuse.hpp"

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

std::optional<std::size_t> octal(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  std::size_t value = 0;
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

}  // namespace

bool is_tar(std::string_view head) { return head.size() >= kBlock && head.substr(kMagic, 5) == "ustar"; }

std::vector<TarFile> tar_files(const Input& archive) {
  const std::string_view all = archive.bytes();
  std::vector<TarFile> files;
  for (std::size_t at = 0;;) {
    if (at + kBlock > all.size())
      refuse("{}:byte {}: the archive ends early; expected a complete tar archive", archive.path(), at);
    if (all[at] == '\0') return files;
    const std::string_view header = all.substr(at, kBlock);
    if (octal(field(header, kChecksum, kChecksumSize)) != checksum(header))
      refuse("{}:byte {}: a header with a wrong checksum; expected a complete tar archive", archive.path(), at);
    const std::optional<std::size_t> size = octal(field(header, kSize, kSizeSize));
    if (!size || *size > all.size() - at - kBlock)
      refuse("{}:byte {}: the archive ends early; expected a complete tar archive", archive.path(), at);
    if (header[kKind] == '0' || header[kKind] == '\0') {
      const std::string_view prefix = field(header, kPrefix, kPrefixSize), name = field(header, kName, kNameSize);
      files.push_back({fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", name), all.substr(at + kBlock, *size)});
    }
    at += kBlock + (*size + kBlock - 1) / kBlock * kBlock;
  }
}

}  // namespace tidepool
