// Writer of trace files: chunk by chunk while the program runs, or a whole trace at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/file/format.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Writes a trace file by appending only. After each append(), a reader of the file gets the trace up to that point;
/// after finish(), all of it. A text that takes more than file::kMostRaw bytes with its length is an InputError.
class TraceFileWriter {
 public:
  /// @param write  is called with the next bytes of the file
  explicit TraceFileWriter(std::function<void(std::string_view)> write);

  /// Appends the part of `data` that was not appended before, as one chunk. The earlier part must not have changed,
  /// except for the values of meta.
  void append(const TraceData& data);
  /// Appends the rest of the trace (in several chunks if none was appended before), its outputs, losses and meta, and
  /// the index. Nothing can follow.
  void finish(const Trace& trace);

 private:
  void chunk(const TraceData& data, const file::Counts& end);
  void frame(file::Section section, std::size_t records, std::string_view raw);
  template <class Records, class Code>
  void section(file::Section section, const Records& records, std::size_t first, std::size_t last, Code code);
  /// Writes the source lines (of the user's code) of records [first, last), without the records that have none.
  template <class Records>
  void lines(file::Section section, const Records& records, std::size_t first, std::size_t last);
  void texts(file::Section section, const std::vector<std::string>& texts, std::size_t first, std::size_t last);
  void meta(const TraceData& data);

  struct Entry {
    file::Section section;
    std::uint64_t offset;
    std::uint32_t records;
  };

  std::function<void(std::string_view)> write_;
  std::uint64_t offset_ = 0;
  file::Counts done_;
  std::vector<Entry> index_;
  std::map<std::string, std::string> meta_;  ///< as written last
};

/// The bytes of a trace file.
std::string to_trace_file(const Trace& trace);

}  // namespace tidepool
