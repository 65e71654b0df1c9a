#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool::rmm_test {

using namespace tidepool::literals;
using tests::program;

namespace {

using Names = std::vector<std::string>;

constexpr const char* kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

Trace read(const std::string& rows) { return read_rmm(Input{"rmm.dev0.csv", kHeader + rows}); }

}  // namespace

TEST_CASE("an RMM log gives lifetimes with addresses and streams") {
  const Trace trace = read(
      "11,15:47:02.000001,allocate,0x100,256,0x2\n"
      "12,15:47:02.000002,allocate,0x200,512,0\n"
      "11,15:47:02.000003,free,0x100,256,0x2\n"
      "11,15:47:02.000004,allocate,0x100,64,0x2\n");
  CHECK(program(trace) == Names{"alloc 0", "alloc 1", "free 0", "alloc 2"});
  CHECK(trace.buffer(BufferId{1}).address == 0x200);
  CHECK(trace.buffer(BufferId{2}).size == 64_B);
  CHECK(trace.buffer(BufferId{2}).outlives);
  CHECK(trace.data().streams == Names{"0x2", "0"});
  CHECK(trace.buffer(BufferId{1}).stream == StreamId{1});
  CHECK(trace.ideal_peak() == 768_B);
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().meta.at("logged") == to_text(3_us));
}

TEST_CASE("in an RMM log, blocks without an allocation existed before, and second frees are counted") {
  const Trace trace = read(
      "1,10:00:00.000000,free,0x900,32,0\n"
      "1,10:00:00.000000,free,0x900,32,0\n"
      "1,10:00:00.000000,allocate,0x100,8,0\n"
      "1,10:00:00.000000,allocate,0x100,16,0\n");
  CHECK(program(trace) == Names{"free 0", "alloc 1", "free 1", "alloc 2"});
  CHECK(trace.buffer(BufferId{0}).born_before);
  CHECK(trace.data().losses.unmatched_frees == 1);
  CHECK(trace.data().losses.dropped_records == 1);
}

TEST_CASE("failed allocations and allocations of 0 B in an RMM log give no buffers") {
  const Trace trace = read(
      "1,10:00:00.000000,allocate failure,(nil),99999,0\n"
      "1,10:00:00.000000,allocate failure,0x0,99999,0\n"
      "1,10:00:00.000000,allocate,(nil),0,0\n"
      "1,10:00:00.000000,allocate,0x0,0,0\n"
      "1,10:00:00.000000,free,(nil),0,0\n");
  CHECK(trace.buffers().empty());
  CHECK(trace.data().meta.at("failed_allocations") == "2");
}

TEST_CASE("the times of an RMM log may pass midnight") {
  const auto logged = [](const std::string& first, const std::string& second) {
    const Trace trace = read("1," + first + ",allocate,0x1,8,0\n1," + second + ",free,0x1,8,0\n");
    return fmt::format("{}, {} ns late", trace.data().meta.at("logged"), trace.data().losses.clock_residual_ns);
  };
  CHECK(logged("23:59:59.500000", "00:00:00.250000") == "750 ms, 0 ns late");
  CHECK(logged("23:59:59:500000", "00:00:00:250000") == "750 ms, 0 ns late");        // an older format of times
  CHECK(logged("00:00:00.250000", "23:59:59.500000") == "0 ns, 750000000 ns late");  // a late row of the day before
  CHECK(logged("10:00:00.000002", "10:00:00.000000") == "0 ns, 2000 ns late");
  CHECK(logged("1634567890.000000", "1634654290.000000") == to_text(86'400'000_ms) + ", 0 ns late");  // one day apart
}

TEST_CASE("rows of an RMM log that were logged late do not make the time that it spans longer") {
  const Trace trace = read(
      "1,10:00:10.000000,allocate,0x100,1,0\n"
      "2,10:00:08.000000,allocate,0x200,1,0\n"
      "2,10:00:09.000000,allocate,0x300,1,0\n"
      "1,10:00:11.000000,free,0x100,1,0\n");
  CHECK(trace.data().meta.at("logged") == "1 s");
  CHECK(trace.data().losses.clock_residual_ns == 2'000'000'000);
}

TEST_CASE("an RMM log that is cut off in its last row is read up to that row") {
  const Trace trace = read(
      "1,10:00:00.000000,allocate,0x100,8,0\n"
      "1,10:00:00.000001,fr");
  CHECK(program(trace) == Names{"alloc 0"});
  CHECK(trace.data().losses.dropped_records == 1);
  CHECK(program(read("1,10:00:00.000000,allocate,0x100,8,0")) == Names{"alloc 0"});  // only the line end is missing
}

TEST_CASE("the period of an RMM log gives its iterations") {
  std::string rows;
  for (int i = 0; i < 6; ++i)
    for (const char* row : {"allocate,0x100,8,0", "allocate,0x200,16,0", "free,0x100,8,0", "free,0x200,16,0"})
      rows += "1,10:00:00.000000," + std::string{row} + "\n";
  CHECK(summarize(read(rows)).iterations == 6);
}

TEST_CASE("an RMM log is known by its header or, without one, by its first row") {
  const auto found = [](const std::string& text) { return find_importer(Input{"x.txt", text}, "auto").name; };
  CHECK(found(kHeader) == "rmm");
  CHECK(found("1979932,14:21:19.998533,allocate,0x30a000000,256,0x2\n") == "rmm");
  CHECK(found("1,1634567890.123456,deallocate,0x7f8a40000000,1024,0x7f8a38001020\n") == "rmm");
  CHECK(program(read_rmm(Input{"x.txt", "1,14:21:19.998533,allocate,0x30a000000,256,0x2\n"})) == Names{"alloc 0"});
}

}  // namespace tidepool::rmm_test
