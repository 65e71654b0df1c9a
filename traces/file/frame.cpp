#include "traces/file/frame.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include <bit>
#include <cstring>
#include <new>

#include "traces/base/error.hpp"

namespace tidepool::file {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kLevel = 9;
constexpr std::size_t kPadding = 16;  // spare bytes after the raw ones

template <class... Args>
[[noreturn]] void refuse(std::size_t byte, fmt::format_string<Args...> text, Args&&... args) {
  throw InputError{fmt::format("byte {}: {}", byte, fmt::format(text, std::forward<Args>(args)...))};
}

/// Fills up a frame that zstd shrinks too much, with a frame that decompressors skip.
void append_skipped(std::size_t bytes, std::string& out) {
  store32(ZSTD_MAGIC_SKIPPABLE_START, out);
  store32(static_cast<std::uint32_t>(bytes), out);
  out.append(bytes, '\0');
}

}  // namespace

std::uint32_t load32(const char* bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t load64(const char* bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void store32(std::uint32_t value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }
void store64(std::uint64_t value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

void append_frame(Section section, std::size_t records, std::string_view raw, std::string& out) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kLevel);
  if (ZSTD_isError(size)) throw std::bad_alloc{};  // the output has room for the worst case, so no other error occurs
  packed.resize(size);
  if (packed.size() < raw.size() / kMostShrink) append_skipped(raw.size() / kMostShrink - packed.size(), packed);
  const std::size_t start = out.size();
  store32(kFrameMark, out);
  store32(static_cast<std::uint32_t>(section), out);
  store32(static_cast<std::uint32_t>(records), out);
  store32(static_cast<std::uint32_t>(raw.size()), out);
  store32(static_cast<std::uint32_t>(packed.size()), out);
  store64(checksum(raw), out);
  store32(static_cast<std::uint32_t>(checksum(std::string_view{out}.substr(start))), out);
  out += packed;
}

FrameReader::FrameReader(std::string_view file) : file_{file}, context_{ZSTD_createDCtx()} {
  if (!context_) throw std::bad_alloc{};
}

FrameReader::~FrameReader() { ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(context_)); }

FrameHeader FrameReader::header(std::size_t offset) const {
  const std::size_t left = file_.size() - offset;
  if (left < kFrameHeader)
    refuse(offset, "the file ends within the header of a frame; expected {} more bytes", kFrameHeader - left);
  const char* bytes = file_.data() + offset;
  if (load32(bytes) != kFrameMark)
    refuse(offset, "{:#010x} where a frame begins; expected {:#010x}", load32(bytes), kFrameMark);
  const auto sum = static_cast<std::uint32_t>(checksum({bytes, kFrameHeader - 4}));
  if (load32(bytes + 28) != sum)
    refuse(offset, "the header of a frame has checksum {:08x}; the file says {:08x}", sum, load32(bytes + 28));
  const std::uint32_t section = load32(bytes + 4);
  if (section >= kSections) refuse(offset, "unknown section {}; expected 0 to {}", section, kSections - 1);
  const FrameHeader found{static_cast<Section>(section), load32(bytes + 8), load32(bytes + 12), load32(bytes + 16),
                          load64(bytes + 20)};
  if (found.raw_size > kMostRaw || found.raw_size / kMostShrink > found.packed_size)
    refuse(offset, "the {} frame of {} bytes grows to {}; expected at most {} times as many, and at most {}",
           name(found.section), found.packed_size, found.raw_size, kMostShrink, kMostRaw);
  if (found.packed_size > left - kFrameHeader)
    refuse(offset, "the file ends within the {} frame; expected {} more bytes", name(found.section),
           found.packed_size - (left - kFrameHeader));
  return found;
}

std::string_view FrameReader::raw(std::size_t offset, const FrameHeader& header) {
  if (raw_.size() < header.raw_size + kPadding) raw_.resize(header.raw_size + kPadding);
  const std::string_view packed = file_.substr(offset + kFrameHeader, header.packed_size);
  const std::size_t size = ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(context_), raw_.data(), header.raw_size,
                                               packed.data(), packed.size());
  if (ZSTD_isError(size)) refuse(offset, "the {} frame is damaged ({})", name(header.section), ZSTD_getErrorName(size));
  if (size != header.raw_size)
    refuse(offset, "the {} frame has {} bytes; its header says {}", name(header.section), size, header.raw_size);
  const std::string_view raw{raw_.data(), size};
  if (checksum(raw) != header.checksum)
    refuse(offset, "the {} frame has checksum {:016x}; the file says {:016x}", name(header.section), checksum(raw),
           header.checksum);
  return raw;
}

}  // namespace tidepool::file
