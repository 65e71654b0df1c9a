// The layout of a trace file on disk; traces/FORMAT.md specifies it. Lengths of arrays at a position in the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool::file {

/// The first bytes of a file. They have a byte beyond ASCII and both kinds of line end, so that damage by a transfer as
/// text is detected.
inline constexpr std::string_view kMagic{"\x89TIDE\r\n\x1a", 8};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kFileHeader = 16;  ///< magic, u32 version, u32 zero

inline constexpr std::uint32_t kFrameMark = 0x4d415246;  ///< "FRAM"
inline constexpr std::size_t kFrameHeader = 32;
inline constexpr std::size_t kMostRaw = std::size_t{1} << 26;  ///< bytes of one frame before compression
inline constexpr std::size_t kMostShrink = 64;  ///< the packed size is at least the raw size over this, rounded down,
                                                ///< so that a small file cannot ask for much memory

inline constexpr std::string_view kTrailerMark{"TIDEEND\n", 8};
inline constexpr std::size_t kTrailer = 16;  ///< u64 offset of the index frame, mark

enum class Section : std::uint8_t {
  kMeta,
  kStrings,
  kStreams,
  kBuffers,
  kVersions,
  kOps,
  kUses,
  kSteps,
  kMarks,
  kOrders,
  kOutputs,
  kLosses,
  kChunk,  ///< everything before it is a whole part of the program
  kEnd,    ///< the trace is complete
  kIndex,
  kBufferLines,  ///< the buffers that have a line of the user's code, with this line
  kOpLines,
};
inline constexpr std::size_t kSections = 17;

inline constexpr std::array<std::string_view, kSections> kSectionNames{
    "meta",   "strings", "streams", "buffers", "versions", "ops",   "uses",         "steps",   "marks",
    "orders", "outputs", "losses",  "chunk",   "end",      "index", "buffer lines", "op lines"};

inline std::string_view name(Section section) { return kSectionNames[static_cast<std::size_t>(section)]; }

struct Counts {
  std::size_t strings = 0, streams = 0, buffers = 0, versions = 0, ops = 0, uses = 0, steps = 0, marks = 0, orders = 0;

  static Counts of(const TraceData& data) {
    return {data.strings.size(), data.streams.size(), data.buffers.size(), data.versions.size(), data.ops.size(),
            data.uses.size(),    data.events.size(),  data.marks.size(),   data.orders.size()};
  }
  std::array<std::size_t, 9> all() const {
    return {strings, streams, buffers, versions, ops, uses, steps, marks, orders};
  }
  bool operator==(const Counts&) const = default;
};

}  // namespace tidepool::file
