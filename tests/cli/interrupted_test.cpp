// Ctrl-C in commands that work for long: exit code 130, and what is known so far.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "tests/trace_file.hpp"

namespace tidepool::interrupted_test {

namespace {

struct Interrupted {
  int code;
  std::string out, err;
};

/// Sends Ctrl-C after 2 s; if that was before the work began or had an answer, later.
Interrupted interrupt(const ScratchFolder& scratch, const std::string& command) {
  Interrupted found{};
  for (int seconds = 2; seconds <= 50 && found.out.empty(); seconds *= 5) {
    const std::string line = fmt::format("timeout --foreground --preserve-status -k 60 -s INT {} '{}' {} >'{}' 2>'{}'",
                                         seconds, paths::program(), command, scratch.file("out"), scratch.file("err"));
    found = {WEXITSTATUS(std::system(line.c_str())), content_of(scratch.file("out")), content_of(scratch.file("err"))};
  }
  return found;
}

}  // namespace

TEST_CASE("bound prints the bounds that it knows when it is interrupted") {
  const ScratchFolder scratch;
  const Interrupted found =
      interrupt(scratch, fmt::format("bound '{}' --capacity 0.6x --time-limit 100s",
                                     tests::write_trace(scratch, "chain", tests::chain_trace(8'000))));
  CHECK(found.code == 130);
  CHECK_THAT(found.out, ContainsSubstring("critical-path"));
  CHECK(found.err == "interrupted: these bounds hold; there may be better ones\n");
}

TEST_CASE("a command that knows nothing yet says so when it is interrupted") {
  const ScratchFolder scratch;
  const std::string pipe = scratch.file("pipe");  // without a writer that ends: it is read for ever
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string line =
      fmt::format("timeout --foreground --preserve-status -k 60 -s INT 5 '{}' info '{}' 2>'{}' 3<>'{}'",
                  paths::program(), pipe, scratch.file("err"), pipe);
  CHECK(WEXITSTATUS(std::system(line.c_str())) == 130);
  CHECK(content_of(scratch.file("err")) == "info: interrupted; there is no answer yet\n");
}

TEST_CASE("a command that works for long says so every thirty seconds where there is no terminal") {
  const ScratchFolder scratch;
  const std::string pipe = scratch.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string line = fmt::format("timeout --foreground -s INT 40 '{}' sweep '{}' --policy none 2>'{}' 3<>'{}'",
                                       paths::program(), pipe, scratch.file("err"), pipe);
  CHECK(WEXITSTATUS(std::system(line.c_str())) == 124);  // of `timeout`
  CHECK(content_of(scratch.file("err")) == "sweep: works for 30 s\nsweep: interrupted; there is no answer yet\n");
}

TEST_CASE("a command that works for long says so on a terminal after two seconds") {
  const ScratchFolder scratch;
  const std::string pipe = scratch.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string command =
      fmt::format("timeout --foreground -s INT 8 '{}' info '{}' 3<>'{}'", paths::program(), pipe, pipe);
  if (std::system("script --version >/dev/null") != 0) return tests::skip("no program script");
  const std::string terminal =
      fmt::format("script -qec \"{}\" /dev/null >'{}' </dev/null", command, scratch.file("out"));
  CHECK(WEXITSTATUS(std::system(terminal.c_str())) == 124);  // of `timeout`
  CHECK_THAT(content_of(scratch.file("out")), Catch::Matchers::StartsWith("info: works for 2 s; Ctrl-C ends it"));
}

TEST_CASE("a run whose bound takes long is printed without it when it is interrupted") {
  const ScratchFolder scratch;
  const std::string trace = tests::write_trace(scratch, "chain", tests::chain_trace(200'000));
  // The bound takes some three times as long as all before it, so one of these times is during the bound.
  bool found = false;
  for (int seconds = 1; seconds <= 64 && !found; seconds *= 2) {
    const std::string line = fmt::format(
        "timeout --foreground --preserve-status -k 60 -s INT {} '{}' simulate '{}' --policy dtr-eq --capacity 0.6x "
        "--first "
        ">'{}' 2>'{}'",
        seconds, paths::program(), trace, scratch.file("out"), scratch.file("err"));
    const int code = WEXITSTATUS(std::system(line.c_str()));
    found = content_of(scratch.file("err")) == "dtr-eq: interrupted before its bound was known\n";
    CHECK(code == (found || content_of(scratch.file("out")).empty() ? 130 : 0));
    if (found) CHECK_THAT(content_of(scratch.file("out")), ContainsSubstring("dtr-eq on best-fit"));
    if (code == 0) break;
  }
  CHECK(found);
}

TEST_CASE("a sweep in memory prints its table when it is interrupted") {
  const ScratchFolder scratch;
  const Interrupted found =
      interrupt(scratch, fmt::format("sweep '{}' --policy dtr,lru-swap --capacity 0.5x..1.0x/5000 -j 1 --no-plot",
                                     paths::source_folder() + "/traces/samples/gpt2.tide"));
  CHECK(found.code == 130);
  CHECK_THAT(found.out, ContainsSubstring("\ndtr "));
  CHECK_THAT(found.err, Catch::Matchers::StartsWith("interrupted: "));
  CHECK_THAT(found.err, Catch::Matchers::EndsWith(
                            " of 10,000 runs are above; with -o FILE, the same command goes on from there\n"));
}

}  // namespace tidepool::interrupted_test
