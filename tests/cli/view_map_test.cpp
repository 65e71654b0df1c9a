#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/builder.hpp"

namespace tidepool::view_map_test {

namespace {

/// Ops 0 to 2 make a, b and c, of 64, 32 and 64 KiB; b ends; op 3 makes d, of 128 KiB.
Trace trace_with_hole() {
  TraceBuilder build;
  const auto make = [&](std::int64_t kib, BufferKind kind, std::string_view name) {
    const BufferId buffer = build.alloc({.size = Bytes{kib * 1024}, .kind = kind});
    build.run({.name = build.text(name), .duration = 1_ms}, {{buffer, Access::kWrite}});
    return buffer;
  };
  make(64, BufferKind::kParameter, "a");
  const BufferId b = make(32, BufferKind::kWorkspace, "b");
  make(64, BufferKind::kActivation, "c");
  build.free(b);
  make(128, BufferKind::kGradient, "d");
  return build.finish();
}

/// The map in a terminal of 44 columns, which has 16 rows of 32 characters. With 512 KiB, each character is 1 KiB.
ProgramResult map_of(const std::string& path, std::vector<std::string> options) {
  setenv("COLUMNS", "44", 1);
  setenv("LC_ALL", "C", 1);
  options.insert(options.begin(), {"simulate", path, "--first", "--map"});
  const ProgramResult result = run_program(options);
  unsetenv("COLUMNS");
  unsetenv("LC_ALL");
  return result;
}

}  // namespace

TEST_CASE("simulate --map shows the kind of buffer at each address, and the holes") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "hole", trace_with_hole());
  const std::string map =
      "each character is 1 KiB\n"
      "       0 B|pppppppppppppppppppppppppppppppp\n"
      "          |pppppppppppppppppppppppppppppppp\n"
      "          |................................\n"
      "          |aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
      "   128 KiB|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
      "          |gggggggggggggggggggggggggggggggg\n"
      "          |gggggggggggggggggggggggggggggggg\n"
      "          |gggggggggggggggggggggggggggggggg\n"
      "   256 KiB|gggggggggggggggggggggggggggggggg\n"
      "          |................................\n"
      "          |................................\n"
      "          |................................\n"
      "   384 KiB|................................\n"
      "          |................................\n"
      "          |................................\n"
      "          |................................\n"
      "\n"
      "  p parameter           64 KiB in     1 piece, the largest 64 KiB\n"
      "  g gradient           128 KiB in     1 piece, the largest 128 KiB\n"
      "  a activation          64 KiB in     1 piece, the largest 64 KiB\n"
      "  . nothing            256 KiB in     2 pieces, the largest 224 KiB\n";
  CHECK(map_of(path, {"--capacity", "512KiB"}).out ==
        path + ": none on best-fit, a100-pcie4, 512 KiB: ok\n\naddresses at the peak; " + map);
  CHECK(map_of(path, {"--capacity", "512KiB", "--at", "3"}).out ==
        path + ": none on best-fit, a100-pcie4, 512 KiB: ok\n\naddresses when op 3 (d) begins; " + map);
  const std::string before = map_of(path, {"--capacity", "512KiB", "--at", "2"}).out;
  CHECK_THAT(before,
             ContainsSubstring("|pppppppppppppppppppppppppppppppp\n          |wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\n       "
                               "   |aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"));
  CHECK_THAT(before, ContainsSubstring("  . nothing            352 KiB in     1 piece, the largest 352 KiB\n"));
}

TEST_CASE("the map of a run that was out of memory shows the moment of the failed request") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "hole", trace_with_hole());
  const std::string out = map_of(path, {"--capacity", "256KiB"}).out;  // 128 KiB are free, but not in one piece
  CHECK_THAT(out,
             ContainsSubstring("wants 128 KiB for buffer 3; 128 KiB are held of 256 KiB, the largest hole is 96 KiB"));
  CHECK_THAT(out, ContainsSubstring("addresses when a request finds no place; each character is 512 B\n"));
  CHECK_THAT(out, ContainsSubstring("  . nothing            128 KiB in     2 pieces, the largest 96 KiB\n"));
}

TEST_CASE("a map shows the segments that a pool has reserved side by side") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "hole", trace_with_hole());
  const std::string out = map_of(path, {"--pool", "pytorch"}).out;
  // All buffers lie in one segment for small ones, of 2 MiB.
  CHECK_THAT(out, ContainsSubstring("  . nothing           1.75 MiB in     2 pieces, the largest 1.719 MiB\n"
                                    "  2 MiB in 1 segment\n"));
}

TEST_CASE("a map is refused where there are no addresses, and for ops that do not run") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "hole", trace_with_hole());
  const auto refused = [&](const std::vector<std::string>& options, const std::string& message) {
    const ProgramResult result = map_of(path, options);
    CHECK(result.code == 2);
    CHECK(result.err == "tidepool: " + message + "\n");
  };
  refused({"--pool", "ideal"}, "--map: the pool ideal gives no addresses; expected one that does");
  refused({"--at", "4"}, "--at: '4' is no op of the trace; expected a number from 0 to 3");
  refused({"--capacity", "256KiB", "--at", "3"}, "--at: op 3 does not run; expected one of the ops before it");
  const std::string lifetimes = scratch.file("lifetimes.csv");
  write_file(lifetimes, "id,lower,upper,size\na,0,2,100\n");
  const ProgramResult no_ops = map_of(lifetimes, {"--at", "0"});
  CHECK(no_ops.code == 2);
  CHECK(no_ops.err == "tidepool: --at: the trace has no ops; expected --map without it\n");
  const ProgramResult without = run_program({"simulate", "--view", path, "--at", "1"});
  CHECK(without.code == 2);
  CHECK(without.err == "tidepool: --at: applies to --map, which is not given; expected both\n");
}

TEST_CASE("simulate --map joins the pages of an expandable segment") {
  // Pages have 20 MiB. The second buffer begins behind the first one, lies on three pages, and leaves 16 MiB of the
  // last one.
  const ScratchFolder scratch;
  TraceBuilder build;
  for (const Bytes size : {24_MiB, 40_MiB}) {
    const BufferId buffer = build.alloc({.size = size, .kind = BufferKind::kActivation});
    build.run({.duration = 1_us}, {{buffer, Access::kWrite}});
  }
  const std::string path = tests::write_trace(scratch, "pages", build.finish());
  const std::string map = map_of(path, {"--pool", "pytorch-expandable", "--capacity", "200MiB"}).out;
  CHECK_THAT(map, ContainsSubstring("  a activation          64 MiB in     2 pieces, the largest 40 MiB\n"
                                    "  . nothing             16 MiB in     1 piece, the largest 16 MiB\n"
                                    "  80 MiB in 1 segment\n"));
}

}  // namespace tidepool::view_map_test
