#include <set>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/base/error.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/format.hpp"
#include "traces/file/frame.hpp"
#include "traces/file/writer.hpp"

namespace tidepool::file_test {

using tests::random_trace;

namespace {

Trace read(std::string_view bytes) { return read_trace_file(Input{"t.tide", bytes}); }

std::set<file::Section> sections_of(std::string_view bytes) {
  const file::FrameReader reader{bytes};
  std::set<file::Section> sections;
  for (std::size_t at = file::kFileHeader; at + file::kTrailer < bytes.size();) {
    const file::FrameHeader header = reader.header(at);
    sections.insert(header.section);
    at += file::kFrameHeader + header.packed_size;
  }
  return sections;
}

/// Three steps of a program in three chunks, as a recorder writes them, without an end.
std::string three_chunks() {
  std::string bytes;
  TraceFileWriter writer{[&](std::string_view next) { bytes += next; }};
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_B, .kind = BufferKind::kParameter});
  writer.append(build.so_far());
  const BufferId a = build.alloc({.size = 10_B});
  build.run({.name = build.text("relu")}, {{weight, Access::kRead}, {a, Access::kWrite}});
  writer.append(build.so_far());
  build.free(a);
  writer.append(build.so_far());
  return bytes;
}

}  // namespace

TEST_CASE("a trace that is written to a file is read back unchanged") {
  for (const int ops : {0, 1, 10, 1'000})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Trace trace = random_trace(seed, ops);
      const Trace back = read(to_trace_file(trace));
      CHECK(back.data() == trace.data());
      CHECK(back.hash() == trace.hash());
    }
}

TEST_CASE("a trace of several chunks is read back unchanged") {
  const Trace trace = random_trace(7, 20'000);
  REQUIRE(trace.events().size() > 2 * 16'384);  // more than two chunks: a chunk has at most 16,384 steps
  CHECK(read(to_trace_file(trace)).data() == trace.data());
}

TEST_CASE("a text that does not fit a trace file with its length is refused") {
  TraceBuilder build;
  build.run({.name = build.text(std::string(file::kMostRaw, 'a'))}, {});
  try {
    to_trace_file(build.finish());
    FAIL("no message");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring(": takes 67108868 bytes with its length; a trace file holds at most 67108864"));
  }
}

TEST_CASE("a prefix of a trace file is refused, or gives a shorter trace that says so") {
  const Trace trace = random_trace(3, 20);
  const std::string bytes = to_trace_file(trace);
  std::size_t refused = 0, recovered = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      const Trace part = read(std::string_view{bytes}.substr(0, size));
      if (part.data() == trace.data()) continue;  // only the index is cut off
      CHECK(part.data().meta.count("recovered") == 1);
      CHECK(part.data().losses.dropped_records > 0);
      ++recovered;
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), ContainsSubstring("t.tide:byte "));
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(recovered > 100);
}

TEST_CASE("a file without its index is complete") {
  const Trace trace = random_trace(3, 20);
  const std::string bytes = to_trace_file(trace);
  CHECK(read(std::string_view{bytes}.substr(0, bytes.size() - 1)).data() == trace.data());
}

TEST_CASE("a recording that stops early is recovered up to its last complete chunk") {
  const std::string bytes = three_chunks();
  const Trace whole = read(bytes);
  CHECK(whole.events().size() == 3);
  CHECK(whole.outputs().size() == 1);  // the weight; a is freed
  CHECK(whole.data().losses.dropped_records == 1);

  const Trace part = read(std::string_view{bytes}.substr(0, bytes.size() - 1));  // within the third chunk
  CHECK(part.events().size() == 2);
  CHECK(part.buffer(BufferId{1}).outlives);  // its free was lost
  CHECK(part.outputs().size() == 2);
  CHECK(part.data().losses.dropped_records == 2);  // the free, and the record at the cut
}

TEST_CASE("chunks that are appended one after the other give the same trace") {
  std::string bytes;
  TraceFileWriter writer{[&](std::string_view next) { bytes += next; }};
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_B});
  writer.append(build.so_far());
  build.run({.name = build.text("step")}, {{weight, Access::kReadWrite}});
  build.meta()["source"] = "test";
  const Trace trace = build.finish();
  writer.finish(trace);
  CHECK(read(bytes).data() == trace.data());
}

TEST_CASE("a flipped bit never crashes the reader, and never gives another trace without an error") {
  const Trace trace = random_trace(11, 30);
  const std::string bytes = to_trace_file(trace);
  std::size_t refused = 0;
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    std::string damaged = bytes;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
    try {
      const Trace read_back = read(damaged);
      // The bit was in the four unused bytes of the header, in zstd's own framing, or in the index.
      CHECK((read_back.data() == trace.data() || read_back.data().meta.count("recovered") == 1));
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(refused > bytes.size() / 2);
}

TEST_CASE("a frame that compresses too well is padded, so that no small file can ask for much memory") {
  const std::string raw(1 << 20, '\0');
  std::string bytes;
  file::append_frame(file::Section::kSteps, 1, raw, bytes);
  CHECK(bytes.size() >= raw.size() / file::kMostShrink);
  file::FrameReader reader{bytes};
  CHECK(reader.raw(0, reader.header(0)) == raw);
}

TEST_CASE("lines of the user's code change the hash, and a trace without lines is stored as before there were any") {
  const auto trace_with = [](std::string_view of_buffer, std::string_view of_op) {
    TraceBuilder build;
    for (const char* text : {"model.py:1", "model.py:2"}) build.text(text);
    const auto line = [&](std::string_view text) { return text.empty() ? StringId{} : build.text(text); };
    const BufferId a = build.alloc({.size = 8_B, .line = line(of_buffer)});
    build.run({.line = line(of_op)}, {{a, Access::kWrite}});
    return build.finish();
  };
  const Trace none = trace_with("", "");
  std::set<std::string> hashes{none.hash()};
  for (const auto& [of_buffer, of_op] : {std::pair{"model.py:1", ""}, {"", "model.py:1"}, {"model.py:2", ""}})
    CHECK(hashes.insert(trace_with(of_buffer, of_op).hash()).second);
  CHECK(none.hash() == "20d702a52fc491d9");  // the hash from before traces had lines
  const Trace both = trace_with("model.py:1", "model.py:2");
  CHECK(read(to_trace_file(both)).data() == both.data());
  CHECK(sections_of(to_trace_file(both)).contains(file::Section::kOpLines));
  CHECK(sections_of(to_trace_file(both)).contains(file::Section::kBufferLines));
  for (const file::Section section : sections_of(to_trace_file(none))) CHECK(section <= file::Section::kIndex);
}

TEST_CASE("the hash depends on the content, not on the way it is stored") {
  TraceData data = random_trace(2, 50).data();
  const std::string hash = Trace{data}.hash();
  CHECK(hash == read(to_trace_file(Trace{data})).hash());
  data.ops[7].duration += 1_ns;
  CHECK(Trace{data}.hash() != hash);
}

}  // namespace tidepool::file_test
