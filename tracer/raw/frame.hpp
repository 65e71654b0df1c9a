// The frame of a raw capture file: its header, its chunks, and the head in front of each record. See FORMAT.md.
#pragma once

#include <bit>
#include <cstdint>

namespace tidepool::raw {

static_assert(std::endian::native == std::endian::little, "records are little-endian, as they lie in memory");

inline constexpr char kMagic[8] = {'T', 'P', 'R', 'A', 'W', '\r', '\n', '\x1a'};
inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::uint32_t kChunkMark = 0x4b4e4843;  // "CHNK"
inline constexpr std::uint32_t kMostChunk = 64u << 20;   ///< bytes of a chunk's records
inline constexpr std::uint32_t kNoId = 0xffffffff;       ///< no device, context, stream, event or peer

/// The number of a text in the file; its String record comes before its first use.
enum class Text : std::uint32_t { kEmpty = 0 };

enum class Source : std::uint32_t { kUnknown, kCupti, kInterposer, kTorch, kJax, kTensorflow };

/// The clock of a file's times, in ns: since 1970 (kRealtime), since the machine started (kMonotonicRaw), or as
/// cuptiGetTimestamp counts (kCupti).
enum class Clock : std::uint32_t { kUnknown, kRealtime, kMonotonicRaw, kCupti };

/// The first bytes of a file. Only its last two numbers are overwritten later.
struct FileHeader {
  char magic[8] = {};
  std::uint16_t version = kFormatVersion;
  std::uint16_t bytes = 64;  ///< of this header
  std::uint32_t process = 0;
  Source source = Source::kUnknown;
  Clock clock = Clock::kUnknown;
  std::int64_t time = 0;           ///< on the file's clock, when the file was opened
  std::int64_t realtime = 0;       ///< ns since 1970, at about the same moment
  std::int64_t monotonic_raw = 0;  ///< on CLOCK_MONOTONIC_RAW, at about the same moment
  std::uint64_t lost_records = 0;  ///< records that were not written (disk full, buffers full)
  std::uint64_t closed = 0;        ///< 1 = the recorder closed the file
};
static_assert(sizeof(FileHeader) == 64);

enum class Packing : std::uint32_t { kPlain, kZstd };

struct ChunkHeader {
  std::uint32_t mark = kChunkMark;
  std::uint32_t stored = 0;  ///< bytes that follow this header
  std::uint32_t bytes = 0;   ///< of the records, unpacked
  std::uint32_t records = 0;
  std::uint64_t checksum = 0;  ///< xxh3-64 of the stored bytes
  Packing packing = Packing::kPlain;
  std::uint32_t header_checksum = 0;  ///< low half of the xxh3-64 of the 28 bytes before
};
static_assert(sizeof(ChunkHeader) == 32);

enum class Kind : std::uint16_t {
  kString = 1,
  kInfo,
  kClockReading,
  kDevice,
  kContext,
  kStream,
  kMemory,
  kPool,
  kFrameworkMemory,
  kVmm,
  kKernel,
  kCopy,
  kMemset,
  kLaunch,
  kApi,
  kSync,
  kEventRecord,
  kRange,
  kFrameworkOp,
  kExternal,
  kOverhead,
  kLoss,
  kCommunicator,
  kCollective,
};

/// The head in front of every record. `bytes` counts this head, the fixed part and the tail, and is a multiple of 8.
struct Head {
  Kind kind = {};
  std::uint16_t fixed = 0;  ///< bytes of the fixed part; readers skip fields that a later version appends
  std::uint32_t bytes = 0;
};
static_assert(sizeof(Head) == 8);

}  // namespace tidepool::raw
