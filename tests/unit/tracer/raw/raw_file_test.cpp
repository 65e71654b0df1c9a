// Raw capture files: all records that are written are read back, also after a killed job or a full disk.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/thread_sanitizer.hpp"
#include "tracer/raw/fields.hpp"
#include "tracer/raw/reader.hpp"
#include "tracer/raw/writer.hpp"
#include "traces/names.hpp"

namespace tidepool::raw_file_test {

namespace {

/// Packs a chunk with zstd's level 1.
std::size_t zstd_pack(void* to, std::size_t capacity, const void* from, std::size_t bytes) {
  const std::size_t size = ZSTD_compress(to, capacity, from, bytes, 1);
  return ZSTD_isError(size) ? 0 : size;
}

constexpr std::uint32_t kLongest = 120'000;  ///< ms that a writer may take, also if the machine does other work

struct ScratchFile {
  raw::Log read() const { return raw::read_raw(read_input(path)); }
  std::string bytes() const { return content_of(path); }
  /// Waits until the file has a record of memory; at least a minute if it gets none.
  void await_memory() const {
    for (int wait = 0; wait < 60'000 && read().memory.empty(); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  ScratchFolder folder;
  std::string path = folder.file("1.cupti.raw");
};

raw::FileHeader header() {
  raw::FileHeader header;
  header.process = 4711;
  header.source = raw::Source::kCupti;
  header.clock = raw::Clock::kCupti;
  header.time = 99;
  return header;
}

raw::Memory allocation(std::uint64_t address) {
  raw::Memory record;
  record.time = 5;
  record.address = address;
  record.size = 4096;
  record.operation = raw::MemoryOperation::kAlloc;
  record.memory = raw::MemoryKind::kDevice;
  return record;
}

/// Three chunks, each with one allocation, at addresses 1, 2 and 3.
std::string three_chunks() {
  const ScratchFile file;
  raw::Writer writer;
  REQUIRE(writer.open(file.path.c_str(), header()) == 0);
  for (std::uint64_t address = 1; address <= 3; ++address) {
    CHECK(writer.append(allocation(address)));
    CHECK(writer.flush(kLongest));
  }
  CHECK(writer.close(kLongest));
  return file.bytes();
}

std::string complaint(std::string_view bytes) {
  return tests::complaint([](const Input& input) { return raw::read_raw(input); }, bytes);
}

constexpr std::size_t kChunk = sizeof(raw::ChunkHeader) + sizeof(raw::Head) + sizeof(raw::Memory);

}  // namespace

TEST_CASE("a reader gives the records that a raw writer has written") {
  for (const raw::Pack pack : {raw::Pack{nullptr}, raw::Pack{zstd_pack}}) {
    const ScratchFile file;
    raw::Writer writer;
    REQUIRE(writer.open(file.path.c_str(), header(), {.pack = pack}) == 0);
    const raw::Text name = writer.text("_Z3addPf");
    CHECK(writer.text("_Z3addPf") == name);
    CHECK(writer.text("") == raw::Text::kEmpty);
    raw::Kernel kernel;
    kernel.start = 10, kernel.end = 30, kernel.name = name, kernel.correlation = 7, kernel.grid[2] = 3;
    CHECK(writer.append(kernel));
    raw::Launch launch;
    launch.correlation = 7;
    const std::vector<raw::BufferUse> uses{
        {.address = 0x7f00, .parameter = 1, .access = raw::Access::kRead, .evidence = raw::Evidence::kConst},
        {.address = 0x8f00, .offset = 16, .access = raw::Access::kTouch, .evidence = raw::Evidence::kParameter}};
    CHECK(writer.append(launch, uses));
    CHECK(writer.append(allocation(0x7f00)));
    CHECK(writer.close(kLongest));

    const raw::Log log = file.read();
    CHECK(log.header.process == 4711);
    CHECK(log.header.clock == raw::Clock::kCupti);
    CHECK(log.header.time == 99);
    CHECK(log.header.realtime > 1'600'000'000'000'000'000);
    CHECK(log.header.monotonic_raw > 0);
    CHECK(log.header.closed == 1);
    CHECK(log.cut_off_bytes == 0);
    REQUIRE(log.kernels.size() == 1);
    CHECK(log.text(log.kernels[0].name) == "_Z3addPf");
    CHECK(log.kernels[0].end == 30);
    CHECK(log.kernels[0].grid[2] == 3);
    REQUIRE(log.launches.size() == 1);
    CHECK(log.launches[0].record.uses == 2);
    REQUIRE(log.uses.size() == 2);
    CHECK(log.uses[0].evidence == raw::Evidence::kConst);
    CHECK(log.uses[1].offset == 16);
    REQUIRE(log.memory.size() == 1);
    CHECK(log.memory[0].address == 0x7f00);
    CHECK(log.memory[0].stream == raw::kNoId);
  }
}

TEST_CASE("threads may write at the same time, and every record is in the file once") {
  const ScratchFile file;
  raw::Writer writer;
  constexpr std::uint64_t kThreads = 4, kEach = 5000;
  REQUIRE(writer.open(file.path.c_str(), header(), {.chunk_bytes = 1 << 16, .chunks = 64, .pack = zstd_pack}) == 0);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) writer.append(allocation(t * kEach + i));
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(writer.close(kLongest));
  const raw::Log log = file.read();
  std::vector<int> seen(kThreads * kEach);
  for (const raw::Memory& record : log.memory) ++seen[record.address];
  CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<int>(kThreads * kEach));
}

TEST_CASE("the file of a killed job has all records that were flushed") {
  const ScratchFile file;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    raw::Writer writer;
    if (writer.open(file.path.c_str(), header()) != 0) _exit(1);
    for (std::uint64_t i = 0; i < 100; ++i) writer.append(allocation(i));
    writer.flush(kLongest);
    writer.append(allocation(100));
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  const raw::Log log = file.read();
  CHECK(log.memory.size() >= 100);
  CHECK(log.header.closed == 0);
}

TEST_CASE("a raw writer's records are written to the disk without a flush") {
  const ScratchFile file;
  raw::Writer writer;
  REQUIRE(writer.open(file.path.c_str(), header(), {.flush_after_ms = 1}) == 0);
  writer.append(allocation(1));
  file.await_memory();
  CHECK(file.read().memory.size() == 1);
}

TEST_CASE("a full disk is reported once, and its lost records are counted, and the file stays readable") {
  const ScratchFile file;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // a limit on file sizes acts like a full disk, in this process only
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    static int told = 0;
    raw::Writer writer;
    const raw::WriterOptions options{.flush_after_ms = 600'000,  // only flush() divides the records into chunks
                                     .on_failure = [](int error) { told += error == EFBIG ? 1 : 100; }};
    if (writer.open(file.path.c_str(), header(), options) != 0) _exit(1);
    for (std::uint64_t i = 0; i < 10; ++i) writer.append(allocation(i));
    writer.flush(kLongest);
    for (std::uint64_t i = 0; i < 90; ++i) writer.append(allocation(i));
    writer.flush(kLongest);
    for (std::uint64_t i = 0; i < 5; ++i) writer.append(allocation(i));
    const bool complete = writer.close(kLongest);
    _exit(told == 1 && !complete ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  const raw::Log log = file.read();
  CHECK(log.memory.size() == 10);
  CHECK(log.header.lost_records == 95);
  CHECK(log.cut_off_bytes == 0);
}

TEST_CASE("a raw writer has no descriptor that the job could close, and writes into no file of the job") {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{});
  };
  const ScratchFile file, kept;
  const mode_t mask = umask(0777);
  const auto before = descriptors();
  static int told = 0;
  raw::Writer writer;
  REQUIRE(writer.open(file.path.c_str(), header(), {.flush_after_ms = 600'000, .on_failure = [](int error) {
                                                      told += error == ENOENT ? 1 : 100;
                                                    }}) == 0);
  umask(mask);
  writer.append(allocation(1));
  CHECK(writer.flush(kLongest));
  CHECK(descriptors() == before);
  CHECK(file.read().memory.size() == 1);
  std::filesystem::rename(file.path, kept.path);
  std::ofstream{file.path} << "the job's";
  writer.append(allocation(2));
  writer.flush(kLongest);
  CHECK_FALSE(writer.close(kLongest));
  CHECK(told == 1);
  CHECK(file.bytes() == "the job's");
  CHECK(kept.read().memory.size() == 1);
}

TEST_CASE("the child of a fork leaves the file to its parent and may open its own") {
  if (tests::skipped_by_thread_sanitizer("supports no new threads in the child of a process with threads")) return;
  const ScratchFile file, of_child;
  raw::Writer writer;
  REQUIRE(writer.open(file.path.c_str(), header()) == 0);
  writer.append(allocation(1));
  // Once this record is written, the writer's thread is idle. A fork while that thread works would break the allocator
  // of a sanitizer.
  file.await_memory();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    writer.abandon();
    if (writer.append(allocation(2)) || writer.open(of_child.path.c_str(), header()) != 0) _exit(1);
    writer.append(allocation(3));
    _exit(writer.close(kLongest) ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(writer.close(kLongest));
  REQUIRE(file.read().memory.size() == 1);
  CHECK(file.read().memory[0].address == 1);
  REQUIRE(of_child.read().memory.size() == 1);
  CHECK(of_child.read().memory[0].address == 3);
}

TEST_CASE("a raw file that is cut off anywhere behind its header gives its complete chunks") {
  const std::string bytes = three_chunks();
  REQUIRE(bytes.size() == sizeof(raw::FileHeader) + 3 * kChunk);
  for (std::size_t size = sizeof(raw::FileHeader); size <= bytes.size(); ++size) {
    const raw::Log log = raw::read_raw(Input{"t.raw", std::string_view{bytes}.substr(0, size)});
    const std::size_t behind = size - sizeof(raw::FileHeader);
    CHECK(log.memory.size() == behind / kChunk);
    CHECK(log.cut_off_bytes == behind % kChunk);
  }
  CHECK(raw::read_raw(Input{"t.raw", bytes + std::string(100, '\0')}).cut_off_bytes == 100);
}

TEST_CASE("a raw file that is damaged in the middle is refused, and the message names the chunk") {
  const std::string bytes = three_chunks();
  const auto damaged = [&](std::size_t at, char value) {
    std::string copy = bytes;
    copy[at] = value;
    return complaint(copy);
  };
  const std::size_t second = sizeof(raw::FileHeader) + kChunk;
  CHECK(damaged(second, 'X') == "t.log (chunk 1): 0x4b4e4858 where it begins; expected 0x4b4e4843");
  CHECK_THAT(damaged(second + 9, 'X'), Catch::Matchers::StartsWith("t.log (chunk 1): its header has checksum "));
  CHECK_THAT(damaged(second + 40, 'X'), Catch::Matchers::StartsWith("t.log (chunk 1): checksum "));
  CHECK(damaged(8, 9) == "t.log: format version 9; this tidepool reads version 1");
  CHECK(damaged(0, 'X') == "t.log: does not begin as a raw capture file does");
  CHECK(complaint("TPRAW") == "t.log: 5 bytes; expected the 64 of the header of a raw capture file");
}

TEST_CASE("in texts that are not UTF-8, invalid bytes become question marks") {
  const ScratchFile file;
  raw::Writer writer;
  REQUIRE(writer.open(file.path.c_str(), header()) == 0);
  CHECK(writer.append(raw::Info{writer.text("caf\xe9"), writer.text("caf\xc3\xa9")}));
  CHECK(writer.close(kLongest));
  const raw::Log log = file.read();
  REQUIRE(log.infos.size() == 1);
  CHECK(log.text(log.infos[0].key) == "caf?");
  CHECK(log.text(log.infos[0].value) == "caf\xc3\xa9");
}

TEST_CASE("a source or clock of a later version is unknown") {
  std::string bytes = three_chunks();
  const std::uint32_t later = 40000;
  std::memcpy(bytes.data() + offsetof(raw::FileHeader, source), &later, sizeof later);
  std::memcpy(bytes.data() + offsetof(raw::FileHeader, clock), &later, sizeof later);
  const raw::Log log = raw::read_raw(Input{"t.raw", bytes});
  CHECK(log.header.source == raw::Source::kUnknown);
  CHECK(log.header.clock == raw::Clock::kUnknown);
  CHECK(log.memory.size() == 3);
}

TEST_CASE("JSON lines give the same records as the binary format") {
  const raw::Log log = raw::read_raw(
      Input{"t.jsonl",
            "{\"tidepool_raw\": 1, \"process\": 12, \"source\": \"torch\", \"clock\": \"realtime\", \"time\": 5}\n"
            "{\"kind\": \"framework_memory\", \"time\": 7, \"action\": \"alloc\", \"address\": 4096, \"size\": 512,"
            " \"category\": \"gradient\", \"name\": \"w\"}\n"
            "{\"kind\": \"framework_op\", \"name\": \"aten::relu\", \"start\": 8, \"end\": 9, \"phase\": \"forward\","
            " \"uses\": [[\"read\", 4096], [\"write\", 8192, 512]]}\n"
            "{\"kind\": \"launch\", \"correlation\": 3, \"evidence\": \"parameter\", \"uses\": [[\"touch\", 4096]]}\n"
            "{\"kind\": \"memory\", \"operation\": \"al"});
  CHECK(log.header.source == raw::Source::kTorch);
  CHECK(log.header.clock == raw::Clock::kRealtime);
  REQUIRE(log.framework_memory.size() == 1);
  CHECK(log.framework_memory[0].category == raw::Category::kGradient);
  CHECK(log.text(log.framework_memory[0].name) == "w");
  REQUIRE(log.ops.size() == 1);
  CHECK(log.ops[0].record.uses == 2);
  CHECK(log.uses[1].size == 512);
  CHECK(log.uses[1].evidence == raw::Evidence::kSchema);
  REQUIRE(log.launches.size() == 1);
  CHECK(log.launches[0].first_use == 2);
  CHECK(log.launches[0].record.stream == raw::kNoId);
  CHECK(log.uses[2].access == raw::Access::kTouch);
  CHECK(log.uses[2].evidence == raw::Evidence::kParameter);
  CHECK(log.cut_off_bytes == 35);
}

TEST_CASE("wrong raw JSON lines are refused with their line and the reason") {
  const std::string head = "{\"tidepool_raw\": 1}\n";
  CHECK(complaint("{\"tidepool_raw\": 2}\n") == "t.log:1: format version 2; this tidepool reads version 1");
  CHECK(complaint("{\"tidepool_raw\": 1}") == "t.log: the first line is cut off; expected one with \"tidepool_raw\"");
  CHECK_THAT(complaint(head + "{\"kind\": \"kernle\"}\n"),
             Catch::Matchers::StartsWith("t.log:2: no record named 'kernle', did you mean 'kernel'?; known: info, "));
  CHECK(complaint(head + "{\"kind\": \"pool\", \"operation\": \"make\"}\n") ==
        "t.log:2: 'operation' is \"make\"; expected unknown, create, destroy or trim");
  CHECK(complaint(head + "{\"kind\": \"context\", \"device\": -1}\n") ==
        "t.log:2: 'device' is -1; expected 0 to 4294967295");
  CHECK(complaint(head + "{\"kind\": \"context\", \"devise\": 1}\n") ==
        "t.log:2: unknown key 'devise'; expected kind, context or device");
  CHECK(complaint(head + "{\"kind\": \"launch\", \"uses\": [[\"read\"]]}\n") ==
        "t.log:2: 'uses' has a row of 1; expected [access, address] or [access, address, size]");
}

TEST_CASE("FORMAT.md of raw files names every record, field and word") {
  std::ifstream file{paths::source_folder() + "/tracer/raw/FORMAT.md"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  raw::each_kind([&]<class Record>(const char* kind) {
    const std::size_t at = text.find(fmt::format("| `{}` | {} |", kind, static_cast<int>(Record::kKind)));
    CAPTURE(kind);
    REQUIRE(at != std::string::npos);
    const std::string row = text.substr(at, text.find('\n', at) - at);
    Record record;
    raw::fields(record, [&](const char* name, auto& field) {
      CAPTURE(name);
      CHECK(row.find(name) != std::string::npos);
      using Field = std::remove_reference_t<decltype(field)>;
      if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, raw::Text>)
        CHECK(text.find(fmt::format("{}", fmt::join(words<Field>().first(3), ", "))) != std::string::npos);
    });
  });
}

}  // namespace tidepool::raw_file_test
