// From the frames of a trace file to the arrays of a trace.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "traces/file/counts.hpp"
#include "traces/file/format.hpp"
#include "traces/trace.hpp"

namespace tidepool::file {

/// Takes the frames of a file in order. Errors are InputErrors without the position of the frame.
class Decoder {
 public:
  /// Makes room for what all frames say they hold.
  void reserve(const Counts& expected);
  void take(Section section, std::size_t records, std::string_view raw);

  /// Whether the end frame came.
  bool complete() const { return complete_; }
  /// Whether at least one chunk is whole.
  bool has_chunk() const { return chunks_ > 0; }
  /// Everything, after the end frame.
  TraceData finish();
  /// What the last whole chunk and those before it hold, made into a trace that ends there.
  /// @param why  goes into its meta
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

/// How many records of a section fit into `raw_size` bytes at most.
std::size_t most_records(Section section, std::size_t raw_size);

/// The count that a section's records add to, or null for what has none.
std::size_t* count_of(Counts& counts, Section section);

}  // namespace tidepool::file
