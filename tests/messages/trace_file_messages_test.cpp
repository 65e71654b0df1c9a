// Messages about wrong trace files, word for word.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/base/error.hpp"
#include "traces/file/columns.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/format.hpp"
#include "traces/file/frame.hpp"
#include "traces/file/writer.hpp"

namespace tidepool::trace_file_messages_test {

using file::Section;

namespace {

Trace read(std::string_view bytes) { return read_trace_file(Input{"t.tide", bytes}); }

std::string header() {
  std::string bytes{file::kMagic};
  file::store32(file::kVersion, bytes);
  file::store32(0, bytes);
  return bytes;
}

/// A file of one op that reads a buffer of 10 bytes, which exists before and after the op. The first frame begins at
/// byte 16.
std::string small_file() {
  TraceBuilder build;
  const BufferId a = build.existing({.size = 10_B});
  build.run({.name = build.text("op")}, {{a, Access::kRead}});
  return to_trace_file(build.finish());
}

/// The smallest file with one frame: a section of `records` records with these bytes.
std::string file_with(Section section, std::string_view raw, std::size_t records = 1) {
  std::string bytes = header();
  file::append_frame(section, records, raw, bytes);
  return bytes;
}

/// The bytes of number columns with one record each.
std::string numbers(std::initializer_list<std::uint64_t> values) {
  std::string raw;
  file::ColumnWriter columns{raw, 0};
  for (const std::uint64_t value : values) columns.put(value);
  return raw;
}

}  // namespace

TEST_CASE("a truncated trace file is refused with the place where it ends") {
  const std::string bytes = small_file();
  CHECK_THROWS_WITH(read(""), "t.tide:byte 0: the file ends within its header; expected 16 more bytes");
  CHECK_THROWS_WITH(read(bytes.substr(0, 9)), "t.tide:byte 9: the file ends within its header; expected 7 more bytes");
  CHECK_THROWS_WITH(read(bytes.substr(0, 16)),
                    "t.tide:byte 16: the file ends before the trace does; expected an end frame");
  CHECK_THROWS_WITH(read(bytes.substr(0, 20)),
                    "t.tide:byte 16: the file ends within the header of a frame; expected 28 more bytes");
  const std::uint32_t packed = file::load32(bytes.data() + 16 + 16);
  CHECK_THROWS_WITH(read(bytes.substr(0, 50)),
                    fmt::format("t.tide:byte 16: the file ends within the strings frame; expected {} more bytes",
                                16 + 32 + packed - 50));
}

TEST_CASE("the message about a wrong checksum has both checksums") {
  std::string bytes = small_file();
  std::string damaged = bytes;
  damaged[36] = static_cast<char>(damaged[36] ^ 1);  // in the checksum of the strings frame, byte 16 + 20
  CHECK_THROWS_WITH(read(damaged), ContainsSubstring("t.tide:byte 16: the header of a frame has checksum "));
  const std::string raw = numbers({0, 2}) + "op";
  const auto sum = file::checksum(raw);
  // The header of this frame has a wrong checksum of the content; its own checksum is right.
  std::string frame;
  file::append_frame(Section::kStrings, 2, raw, frame);
  std::string head = frame.substr(0, 20);
  file::store64(sum ^ 1, head);
  file::store32(static_cast<std::uint32_t>(file::checksum(head)), head);
  CHECK_THROWS_WITH(
      read(header() + head + frame.substr(32)),
      fmt::format("t.tide:byte 16: the strings frame has checksum {:016x}; the file says {:016x}", sum, sum ^ 1));
}

TEST_CASE("a file of another version or kind is refused") {
  std::string bytes = small_file();
  bytes[8] = 3;
  CHECK_THROWS_WITH(read(bytes), "t.tide:byte 8: format version 3; this tidepool reads version 1");
  CHECK_THROWS_WITH(read("#!/bin/sh\necho hello"), "t.tide:byte 0: not a trace file; expected one made by tidepool");
}

TEST_CASE("an unknown section or word is refused") {
  CHECK_THROWS_WITH(read(file_with(static_cast<Section>(77), "x")),
                    "t.tide:byte 16: unknown section 77; expected 0 to 16");
  // A step of kind 9.
  CHECK_THROWS_WITH(read(file_with(Section::kSteps, "\x09")), "t.tide:byte 16: step 0: kind is 9; expected 0 to 3");
}

TEST_CASE("columns that do not fit their frame are refused") {
  CHECK_THROWS_WITH(read(file_with(Section::kSteps, std::string(1, '\0'))),
                    "t.tide:byte 16: the steps frame ends within the column 'alloc'");
  CHECK_THROWS_WITH(read(file_with(Section::kSteps, std::string(3, '\0'))),
                    "t.tide:byte 16: the steps frame has 1 bytes too many");
  CHECK_THROWS_WITH(read(file_with(Section::kSteps, "\x02", 5)),
                    "t.tide:byte 16: the steps frame has 1 bytes for 5 records; expected more");
}

TEST_CASE("a number of more than 64 bits is refused") {
  const auto text_of_length = [](const char* last_byte) {
    return file_with(Section::kStrings, std::string(9, '\xff') + last_byte);
  };
  for (const char* last_byte : {"\x02", "\x7f", "\x81", "\xff"})
    CHECK_THROWS_WITH(read(text_of_length(last_byte)),
                      "t.tide:byte 16: the text frame has a number of more than 64 bits in the column 'length'");
  CHECK_THROWS_WITH(read(text_of_length("\x01")),  // 2^64 - 1
                    "t.tide:byte 16: the text frame ends within the column 'text'");
}

TEST_CASE("a number that is no id is refused with its record") {
  // A mark before step 0, of kind iteration, whose name is 2^32 - 1: the number for no id.
  const std::string raw = numbers({0}) + std::string(1, '\0') + numbers({0x1fffffffe});
  CHECK_THROWS_WITH(read(file_with(Section::kMarks, raw)),
                    "t.tide:byte 16: mark 0: name is 4294967295; expected 0 to 4294967294");
}

TEST_CASE("a parent that does not come before its version is refused: nothing is cyclic") {
  // Version 0, of kind initial, of buffer 0. Its parent is one version before it.
  const std::string raw = std::string(1, '\0') + numbers({0, 1});
  CHECK_THROWS_WITH(read(file_with(Section::kVersions, raw)),
                    "t.tide:byte 16: version 0: parent is 1; expected 0 to 0");
}

namespace {

/// A whole file with one buffer that exists all the time. Its size and its name may be wrong; `name` is twice the
/// number of a string.
std::string buffer_file(std::uint64_t size, std::uint64_t name) {
  std::string bytes = header();
  file::append_frame(Section::kStrings, 1, numbers({0}), bytes);
  file::append_frame(Section::kStreams, 1, numbers({1}) + "0", bytes);
  const std::string buffer = numbers({size, 1, name, 0, 0}) + std::string("\0\1", 2);
  file::append_frame(Section::kBuffers, 1, buffer, bytes);
  file::append_frame(Section::kVersions, 1, std::string(1, '\0') + numbers({0, 0}), bytes);
  file::append_frame(Section::kEnd, 0, "", bytes);
  return bytes;
}

}  // namespace

TEST_CASE("records are checked, and the message names the record") {
  CHECK(read(buffer_file(10, 0)).ideal_peak() == 10_B);
  CHECK_THROWS_WITH(read(buffer_file(static_cast<std::uint64_t>(-5), 0)),
                    "t.tide: buffer 0: size is -5; expected at least 0");
  CHECK_THROWS_WITH(read(buffer_file(10, 6)), "t.tide: buffer 0: unknown string 3; the trace has 1");
}

TEST_CASE("a line of the user's code needs its buffer or op before it, and a text") {
  CHECK_THROWS_WITH(read(file_with(Section::kBufferLines, numbers({0, 0}))),
                    "t.tide:byte 16: the line of buffer 0 comes before the buffer itself; there are 0");
  CHECK_THROWS_WITH(read(file_with(Section::kOpLines, numbers({6, 0}))),
                    "t.tide:byte 16: the line of op 3 comes before the op itself; there are 0");
  const auto with_line = [](std::uint64_t line) {
    std::string bytes = buffer_file(10, 0), frame;
    file::append_frame(Section::kEnd, 0, "", frame);
    bytes.resize(bytes.size() - frame.size());
    file::append_frame(Section::kBufferLines, 1, numbers({0, line}), bytes);
    return bytes + frame;
  };
  CHECK_THROWS_WITH(read(with_line(2)), "t.tide: buffer 0: unknown string 1; the trace has 1");
  CHECK_THROWS_WITH(read(with_line(0)), "t.tide: buffer 0: its line is empty; expected one as in model.py:88");
}

TEST_CASE("a recovered trace says how far it goes and why") {
  TraceBuilder build;
  std::string bytes;
  TraceFileWriter writer{[&](std::string_view next) { bytes += next; }};
  build.existing({.size = 10_B});
  writer.append(build.so_far());
  const std::size_t end = bytes.size();
  CHECK(read(bytes).data().meta.at("recovered") ==
        fmt::format(
            "0 steps, to the last whole chunk; byte {}: the file ends before the trace does; expected an end frame",
            end));
  bytes += std::string(40, '\0');
  CHECK(read(bytes).data().meta.at("recovered") ==
        fmt::format("0 steps, to the last whole chunk; byte {}: 0x00000000 where a frame begins; expected 0x4d415246",
                    end));
}

TEST_CASE("the part before a cut must be a trace by itself") {
  // A chunk whose only step frees an unknown buffer.
  std::string bytes = header();
  file::append_frame(Section::kSteps, 1, "\x01" + numbers({0}), bytes);
  file::append_frame(Section::kChunk, 0, numbers({0, 0, 0, 0, 0, 0, 1, 0, 0}), bytes);
  CHECK_THROWS_WITH(
      read(bytes), fmt::format("t.tide:byte {}: the file ends before the trace does; expected an end frame; what comes "
                               "before it is no whole trace (strings: the first one must be empty)",
                               bytes.size()));
}

}  // namespace tidepool::trace_file_messages_test
