// Frames: the compressed, checksummed pieces that a trace file consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/file/format.hpp"

namespace tidepool::file {

struct FrameHeader {
  Section section = Section::kMeta;
  std::uint32_t records = 0;
  std::uint32_t raw_size = 0;
  std::uint32_t packed_size = 0;
  std::uint64_t checksum = 0;  ///< xxh3-64 of the raw bytes
};

/// Appends one frame to `out`. `raw` has at most kMostRaw bytes.
void append_frame(Section section, std::size_t records, std::string_view raw, std::string& out);

/// Reads frames out of a whole file. Errors are InputErrors of the form "byte 1234: ...".
class FrameReader {
 public:
  explicit FrameReader(std::string_view file);
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// The header of the frame at `offset`. Refuses a frame that is not wholly in the file.
  FrameHeader header(std::size_t offset) const;
  /// The raw bytes of that frame; valid until the next call.
  std::string_view raw(std::size_t offset, const FrameHeader& header);

 private:
  std::string_view file_;
  void* context_;
  std::string raw_;
};

/// Reads and appends little-endian numbers. The bytes to read must exist.
std::uint32_t load32(const char* bytes);
std::uint64_t load64(const char* bytes);
void store32(std::uint32_t value, std::string& out);
void store64(std::uint64_t value, std::string& out);

/// xxh3-64 of some bytes.
std::uint64_t checksum(std::string_view bytes);

}  // namespace tidepool::file
