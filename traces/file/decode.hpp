// Reader of trace files, complete or truncated: from frames to the arrays of a trace.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/file/format.hpp"
#include "traces/trace.hpp"

namespace tidepool::file {

/// Takes the frames of a file in order. Damaged frames throw InputError without the position of the frame. Linear in
/// the bytes of the frames.
class Decoder {
 public:
  /// Reserves memory for the records that all frames announce.
  void reserve(const Counts& expected);
  /// @param records  the number of records in the frame
  /// @param raw      the bytes of the frame, decompressed
  void take(Section section, std::size_t records, std::string_view raw);

  /// Whether the end frame came.
  bool complete() const { return complete_; }
  /// Whether at least one chunk is whole.
  bool has_chunk() const { return chunks_ > 0; }
  /// The whole trace; call after the end frame.
  TraceData finish();
  /// A trace that ends with the last whole chunk; call if has_chunk().
  /// @param why  the reason, for the trace's meta
  TraceData recover(const std::string& why);

 private:
  void chunk(std::string_view raw);
  void texts(std::size_t records, std::string_view raw, std::vector<std::string>& texts);
  void derive();

  TraceData data_;
  std::vector<std::string> meta_;  ///< key, value, key, value, ...
  Counts chunk_;                   ///< up to the end of the last whole chunk
  std::size_t chunks_ = 0;
  bool complete_ = false;
};

/// The most records of a section that fit into `raw_size` bytes.
std::size_t most_records(Section section, std::size_t raw_size);

/// The count that a section's records add to; null if the section has none.
std::size_t* count_of(Counts& counts, Section section);

}  // namespace tidepool::file

namespace tidepool {

/// A file without a whole index is read chunk by chunk. If it ends early or is damaged, the trace goes up to the last
/// whole chunk before the damage; its meta has "recovered" with the place and the reason, and its losses count at least
/// one dropped record. Without a whole chunk, or with an index, damage is an InputError.
/// @throws InputError  "run.tide:byte 8: format version 3; this tidepool reads version 1"
/// @throws InputError  "run.tide:byte 1234: the ops frame has checksum 0123456789abcdef; the file says
/// 0123456789abcdee"
/// @throws InputError  "run.tide: op 388 reads buffer 41, which was freed before it (step 880)"
Trace read_trace_file(const Input& input);

}  // namespace tidepool
