
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/file/columns.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/frame.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

using file::FrameHeader;
using file::Section;

struct Frame {
  std::size_t offset = 0;
  FrameHeader header;
};

InputError at_byte(std::size_t byte, const std::string& what) {
  return InputError{fmt::format("byte {}: {}", byte, what)};
}

class TraceFileReader {
 public:
  explicit TraceFileReader(std::string_view bytes) : bytes_{bytes}, reader_{bytes} {}

  TraceData read() {
    check_header();
    const std::optional<Frame> index = find_index();
    find_frames(index ? index->offset : bytes_.size());
    if (index) check_index(*index);
    reserve();
    for (const Frame& frame : frames_) {
      if (decoder_.complete()) break;
      try {
        const std::string_view raw = reader_.raw(frame.offset, frame.header);
        take(frame, raw);
      } catch (const InputError& error) {
        stopped_ = error;
        break;
      }
    }
    if (decoder_.complete()) return decoder_.finish();
    if (!stopped_) stopped_ = at_byte(bytes_.size(), "the file ends before the trace does; expected an end frame");
    if (index || !decoder_.has_chunk()) throw *stopped_;
    recovered_ = true;
    return decoder_.recover(stopped_->what());
  }
  /// The position and reason of the damage, if read() returned the trace before it.
  const InputError* why_recovered() const { return recovered_ ? &*stopped_ : nullptr; }

 private:
  void check_header() const {
    if (!bytes_.starts_with(file::kMagic.substr(0, bytes_.size())))
      throw at_byte(0, "not a trace file; expected one made by tidepool");
    if (bytes_.size() < file::kFileHeader)
      throw at_byte(bytes_.size(), fmt::format("the file ends within its header; expected {} more bytes",
                                               file::kFileHeader - bytes_.size()));
    const std::uint32_t version = file::load32(bytes_.data() + file::kMagic.size());
    if (version != file::kVersion)
      throw at_byte(8, fmt::format("format version {}; this tidepool reads version {}", version, file::kVersion));
  }

  /// The index, if the file ends with a whole one.
  std::optional<Frame> find_index() {
    if (bytes_.size() < file::kFileHeader + file::kTrailer || !bytes_.ends_with(file::kTrailerMark))
      return std::nullopt;
    const std::size_t end = bytes_.size() - file::kTrailer;
    const std::uint64_t offset = file::load64(bytes_.data() + end);
    if (offset < file::kFileHeader || offset >= end) return std::nullopt;
    try {
      const Frame index{offset, reader_.header(offset)};
      if (index.header.section != Section::kIndex) return std::nullopt;
      if (offset + file::kFrameHeader + index.header.packed_size != end) return std::nullopt;
      reader_.raw(offset, index.header);
      return index;
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  /// Walks from header to header up to `end`, or to the first damaged one.
  void find_frames(std::size_t end) {
    for (std::size_t offset = file::kFileHeader; offset < end;) {
      try {
        frames_.push_back({offset, reader_.header(offset)});
      } catch (const InputError& error) {
        stopped_ = error;
        return;
      }
      offset += file::kFrameHeader + frames_.back().header.packed_size;
    }
  }

  void check_index(const Frame& index) {
    if (stopped_) throw *stopped_;
    file::ColumnReader columns{reader_.raw(index.offset, index.header), "index", "frame", 0};
    try {
      std::uint64_t offset = 0;
      for (std::size_t i = 0; i < index.header.records; ++i) {
        const std::uint64_t section = columns.get("section");
        offset += columns.get("offset");
        const std::uint64_t records = columns.get("records");
        if (i >= frames_.size() || offset != frames_[i].offset || records != frames_[i].header.records ||
            section != static_cast<std::uint64_t>(frames_[i].header.section))
          throw InputError{fmt::format("the index places frame {} at byte {}; the file has another frame", i, offset)};
      }
      columns.done();
      if (index.header.records != frames_.size())
        throw InputError{fmt::format("the index has {} frames; the file has {}", index.header.records, frames_.size())};
    } catch (const InputError& error) {
      throw at_byte(index.offset, error.what());
    }
  }

  /// Reserves memory for the records in the headers, but not for more than their bytes can hold.
  void reserve() {
    file::Counts counts;
    for (const Frame& frame : frames_)
      if (std::size_t* count = file::count_of(counts, frame.header.section))
        *count += std::min<std::size_t>(frame.header.records,
                                        file::most_records(frame.header.section, frame.header.raw_size));
    decoder_.reserve(counts);
  }

  void take(const Frame& frame, std::string_view raw) {
    try {
      decoder_.take(frame.header.section, frame.header.records, raw);
    } catch (const InputError& error) {
      throw at_byte(frame.offset, error.what());
    }
  }

  std::string_view bytes_;
  file::FrameReader reader_;
  file::Decoder decoder_;
  std::vector<Frame> frames_;
  std::optional<InputError> stopped_;
  bool recovered_ = false;
};

const RegisterImporter kTide{{"tide",
                              "Tidepool's own trace file",
                              {".tide"},
                              [](std::string_view head) { return head.starts_with(file::kMagic) ? 100 : 0; },
                              read_trace_file}};

}  // namespace

Trace read_trace_file(const Input& input) {
  TraceFileReader reader{input.bytes()};
  std::optional<TraceData> data;
  try {
    data = reader.read();
  } catch (const InputError& error) {
    throw InputError{fmt::format("{}:{}", input.path(), error.what())};
  }
  try {
    return Trace{std::move(*data)};
  } catch (const InputError& error) {
    if (!reader.why_recovered()) throw error.at(input.path());
    throw InputError{fmt::format("{}:{}; what comes before it is no whole trace ({})", input.path(),
                                 reader.why_recovered()->what(), error.what())};
  }
}

}  // namespace tidepool
