// Any bytes as a raw capture: read and lowered to a trace, or refused. If the first byte is odd and not '{', the other
// bytes describe the records of a chunk, which gets right headers and checksums.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/lower/lower.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/base/error.hpp"

namespace {

namespace raw = tidepool::raw;

template <class Plain>
void append(const Plain& plain, std::string& out) {
  out.append(reinterpret_cast<const char*>(&plain), sizeof plain);
}

/// A capture of the records that the bytes describe. The bytes of a record are its kind, the sizes of its fixed part
/// and of its tail, and then both parts.
std::string chunk_of(std::string_view bytes) {
  std::string records;
  std::uint32_t count = 0;
  for (; bytes.size() >= 3; ++count) {
    const auto at = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };
    const auto kind = static_cast<raw::Kind>(at(0) % 24);
    const std::size_t fixed = std::min(at(1), bytes.size() - 3), tail = std::min(at(2), bytes.size() - 3 - fixed);
    const std::size_t size = (sizeof(raw::Head) + fixed + tail + 7) / 8 * 8;
    append(raw::Head{kind, static_cast<std::uint16_t>(fixed), static_cast<std::uint32_t>(size)}, records);
    records += bytes.substr(3, fixed + tail);
    records.append(size - sizeof(raw::Head) - fixed - tail, '\0');
    bytes.remove_prefix(3 + fixed + tail);
  }
  raw::FileHeader header;
  std::copy(std::begin(raw::kMagic), std::end(raw::kMagic), header.magic);
  raw::ChunkHeader chunk;
  chunk.stored = chunk.bytes = static_cast<std::uint32_t>(records.size());
  chunk.records = count;
  chunk.checksum = XXH3_64bits(records.data(), records.size());
  chunk.header_checksum = static_cast<std::uint32_t>(XXH3_64bits(&chunk, sizeof chunk - 4));
  std::string file;
  append(header, file);
  append(chunk, file);
  return file + records + '\0';  // so that the chunk is not the last one, which may be damaged
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const bool describes = size > 0 && bytes[0] % 2 == 1 && bytes[0] != '{';
  try {
    const tidepool::Input input{"fuzz.raw", describes ? chunk_of(bytes.substr(1)) : std::string{bytes}};
    tidepool::lower(std::vector{raw::read_raw(input)});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
