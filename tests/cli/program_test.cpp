// What all commands have in common.
#include "tests/program.hpp"

#include <cstdlib>

#include "tests/catch.hpp"

using namespace tidepool;

namespace {

/// Exit code and stderr of `tidepool policies`, with its stdout as the shell is told.
ProgramResult policies_to(const std::string& redirection) {
  const ScratchFolder scratch;
  const std::string line =
      std::string{"'" TIDEPOOL_PROGRAM "' policies "} + redirection + " 2>'" + scratch.file("err") + "'";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", content_of(scratch.file("err"))};
}

}  // namespace

TEST_CASE("output that could not be written is an error") {
  const ProgramResult full = policies_to(">/dev/full");
  CHECK(full.code == 1);
  CHECK(full.err == "tidepool: stdout: not all of it could be written: No space left on device\n");
  const ProgramResult closed = policies_to(">&-");
  CHECK(closed.code == 1);
  CHECK(closed.err == "tidepool: stdout: not all of it could be written: Bad file descriptor\n");
}

TEST_CASE("an option that nobody knows is refused with what may have been meant") {
  const ProgramResult near = run_program({"simulate", "x.tide", "--polcy", "lru"});
  CHECK(near.code == 2);
  CHECK(near.err ==
        "tidepool: no option named '--polcy', did you mean '--policy'? (tidepool simulate --help lists them)\n");
  const ProgramResult far = run_program({"info", "x.tide", "--colour=red"});
  CHECK(far.code == 2);
  CHECK(far.err == "tidepool: no option named '--colour' (tidepool info --help lists them)\n");
}
