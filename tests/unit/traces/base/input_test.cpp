#include "traces/base/input.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::input_test {

namespace {

/// "tidepool\n" a thousand times, compressed by this program.
std::string packed_by(const std::string& program, const ScratchFolder& scratch) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "tidepool\n";
  write_file(scratch.file("text"), text);
  const std::string out = scratch.file("packed");
  if (std::system((program + " -c " + scratch.file("text") + " > " + out + " 2> /dev/null").c_str()) != 0) return "";
  std::ifstream file{out, std::ios::binary};
  return std::string{std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST_CASE("compressed inputs are read directly, and truncated ones are refused with the position") {
  const ScratchFolder scratch;
  for (const auto& [program, form] : {std::pair{"gzip", "gzip"}, std::pair{"xz", "xz"}, std::pair{"zstd", "zstd"}}) {
    const std::string packed = packed_by(program, scratch);
    if (packed.empty()) {
      WARN(program << " is not installed; nothing is tried with it");
      continue;
    }
    INFO(program);
    CHECK(decompressed(Input{"x", packed}).bytes().size() == 9'000);
    CHECK(decompressed(Input{"x", packed + packed}).bytes().size() == 18'000);
    if (form != std::string{"zstd"})
      CHECK(decompressed(Input{"x", packed + std::string(512, '\0')}).bytes().size() == 9'000);
    const std::size_t cut = packed.size() - 10;
    CHECK_THROWS_WITH(decompressed(Input{"x", packed.substr(0, cut)}),
                      "x:byte " + std::to_string(cut) + ": " + form + " data ends early; expected a complete file");
    std::string damaged = packed;
    damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
    CHECK_THROWS_WITH(decompressed(Input{"x", damaged}), ContainsSubstring(std::string{form} + " data is damaged ("));
  }
}

TEST_CASE("if a compressed file's format is not known, only its first bytes are decompressed") {
  for (const char* program : {"gzip", "xz", "zstd"}) {
    const ScratchFolder scratch;
    const std::string packed = scratch.file("zeros");
    const std::string pack = fmt::format("head -c 30000000 /dev/zero | {} -c > {} 2> /dev/null", program, packed);
    if (std::system(pack.c_str()) != 0 || std::filesystem::file_size(packed) == 0) {
      WARN(program << " is not installed; nothing is tried with it");
      continue;
    }
    INFO(program);
    std::size_t seen = 0;
    CHECK_THROWS_WITH(read_input(packed,
                                 [&](const Input& head) {
                                   seen = head.bytes().size();
                                   find_importer(head, "auto");
                                 }),
                      ContainsSubstring(packed + ": binary data in no form that tidepool reads; known: "));
    CHECK(seen == kSniffBytes);
    CHECK_THROWS_WITH(load_trace(packed), ContainsSubstring(packed + ": binary data in no form that tidepool reads"));
    const ProgramResult limited = run_program({"audit", packed, "--max-input", "1MiB"});
    CHECK(limited.code == 2);
    CHECK(limited.err ==
          fmt::format("tidepool: {}: has more than 1 MiB when decompressed; expected no more (--max-input raises it)\n",
                      packed));
  }
  const ProgramResult unknown = run_program({"info", "x.tide", "--max-input", "much"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err ==
        "tidepool: --max-input: 'much' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, "
        "M, G or T, as in 512MiB\n");
}

TEST_CASE("a compressed file that grows more than 500 times is refused before it takes its memory") {
  const ScratchFolder scratch;
  const std::string packed = scratch.file("bomb");
  if (std::system(fmt::format("head -c 600000000 /dev/zero | zstd -c > {} 2> /dev/null", packed).c_str()) != 0) {
    WARN("zstd is not installed; nothing is tried with it");
    return;
  }
  CHECK_THROWS_WITH(read_input(packed),
                    packed + ": has more than 256 MiB when decompressed; expected no more (--max-input raises it)");
}

TEST_CASE("a file that is written does not follow a link with the name of an unfinished one") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("out"), victim = scratch.file("victim");
  std::ofstream{victim} << "as it was";
  std::filesystem::create_symlink(victim, fmt::format("{}.{}.tmp", path, getpid()));
  write_file(path, "new");
  CHECK(content_of(path) == "new");
  CHECK(content_of(victim) == "as it was");
}

TEST_CASE("a large file is read whole, in its order") {
  const ScratchFolder scratch;
  std::string bytes((std::size_t{64} << 20) + 3, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 1021) bytes[i] = static_cast<char>(i / 1021 % 251);
  std::ofstream{scratch.file("x"), std::ios::binary} << bytes;
  CHECK((read_input(scratch.file("x")).bytes() == bytes));
}

TEST_CASE("data that is not compressed is read as it is, and followed by padding") {
  const Input input = decompressed(Input{"x", "plain"});
  CHECK(input.bytes() == "plain");
  for (std::size_t i = 0; i < Input::kPadding; ++i) CHECK(input.bytes().data()[input.bytes().size() + i] == '\0');
}

TEST_CASE("a byte order mark at the front of a text is left out") {
  const std::string mark = "\xef\xbb\xbf", text = R"({"tidepool":1})";
  const Input input{"x", mark + text};
  CHECK(input.bytes() == text);
  for (std::size_t i = 0; i < Input::kPadding; ++i) CHECK(input.bytes().data()[text.size() + i] == '\0');
  const ScratchFolder scratch;
  std::ofstream{scratch.file("x")} << mark << text;
  CHECK(read_input(scratch.file("x")).bytes() == text);
  CHECK(Input{"x", mark}.bytes().empty());
}

TEST_CASE("a file is written whole or not at all") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("out");
  write_file(path, "first");
  write_file(path, "second");
  CHECK(read_input(path).bytes() == "second");
  CHECK_THROWS_WITH(write_file(scratch.file("no/out"), "x"),
                    ContainsSubstring("cannot be written: No such file or directory"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{std::filesystem::path{path}.parent_path()})
    files += entry.is_regular_file();
  CHECK(files == 1);  // no temporary file is left
}

TEST_CASE("the format of an input is found by its first bytes") {
  CHECK(find_importer(Input{"x", R"({"tidepool":1})"}, "auto").name == "jsonl");
  CHECK(find_importer(Input{"x", "\x89TIDE\r\n\x1a"}, "auto").name == "tide");
  CHECK(find_importer(Input{"x", ""}, "jsonl").name == "jsonl");
}

TEST_CASE("writing to a link or a pipe does not replace it") {
  const ScratchFolder scratch;
  const std::string link = scratch.file("link"), target = scratch.file("target");
  write_file(target, "a longer first text");
  std::filesystem::create_symlink(target, link);
  write_file(link, "second");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_input(target).bytes() == "second");

  const std::string pipe = scratch.file("pipe");
  REQUIRE(std::system(("mkfifo " + pipe).c_str()) == 0);
  FILE* const reader = popen(("timeout 300 cat " + pipe).c_str(), "r");
  REQUIRE(reader != nullptr);
  write_file(pipe, "through");
  CHECK(std::filesystem::is_fifo(pipe));
  std::array<char, 100> read{};
  const std::size_t count = std::fread(read.data(), 1, read.size(), reader);  // until the reader ends
  CHECK(pclose(reader) == 0);
  CHECK(std::string(read.data(), count) == "through");
}

}  // namespace tidepool::input_test
