#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/input.hpp"

using namespace tidepool;

namespace {

/// Runs the script in `folder`, where what it makes goes.
ProgramResult gpu_day(const ScratchFolder& folder, const std::string& arguments) {
  const std::string line = "cd '" + folder.file("") + "' && '" TIDEPOOL_SOURCE_DIR "/validator/gpu_day.sh' " +
                           arguments + " >out 2>err </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder.file("out")), content_of(folder.file("err"))};
}

}  // namespace

TEST_CASE("the script for a day with a GPU prints its steps anywhere") {
  const ScratchFolder folder;
  const ProgramResult result = gpu_day(folder, "--dry-run");
  CHECK(result.code == 0);
  for (const char* step : {"system", "calibrate", "capture-gpt2", "sweep", "validate-vgg16", "graph", "questions"})
    CHECK_THAT("\n" + result.out, ContainsSubstring("\n" + std::string{step} + " "));
  CHECK(content_of(folder.file("gpu-day/summary.txt")).empty());
  const ProgramResult some = gpu_day(folder, "--dry-run --only cal,live-gpt2");
  CHECK(some.out == "calibrate                do_calibrate\nlive-gpt2                do_live gpt2\n");
}

TEST_CASE("the script goes on after a step that fails, and does not repeat what is done") {
  const ScratchFolder folder;
  // A program that calibrates, and fails in everything else; a step that takes too long.
  write_file(
      folder.file("program"),
      "#!/bin/sh\ncase $1 in calibrate) echo calibrated;; sweep) sleep 60;; *) echo no $1 here; exit 3;; esac\n");
  REQUIRE(std::system(("chmod +x '" + folder.file("program") + "'").c_str()) == 0);
  const std::string arguments = "--program ./program --only calibrate,sweep,graph,live-gpt2 --limit 1";
  const ProgramResult result = gpu_day(folder, arguments);
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring(" s  ok\n"));
  CHECK_THAT(result.out, ContainsSubstring(" s  not done within 1 s\n"));
  CHECK_THAT(result.out, ContainsSubstring(" s  failed with 3: no simulate here\n"));
  CHECK_THAT(result.out, ContainsSubstring(" s  nothing to do: this tidepool has no run\n"));
  CHECK_THAT(content_of(folder.file("gpu-day/summary.txt")), ContainsSubstring(result.out));
  CHECK(content_of(folder.file("gpu-day/calibrate.log")) == "calibrated\n");
  CHECK_THAT(gpu_day(folder, arguments).out, ContainsSubstring("calibrate                       -  done before\n"));
}

TEST_CASE("the script keeps the results of plans that were executed, and of no other") {
  const ScratchFolder folder;
  // One policy is executed, with something to say about it; one runs out of time in the middle of its result.
  write_file(folder.file("program"), R"(#!/bin/sh
case $1 in
  policies) echo '[{"name":"good","kind":"swap"},{"name":"late","kind":"swap"}]' ;;
  simulate) while [ "$1" != --plan-out ]; do [ "$1" = --policy ] && policy=$2; shift; done; echo "$policy" >"$2" ;;
  validate) echo warning >&2
            case $(cat "$2") in good) echo '{"outcome":"ok"}' ;; *) exit 124 ;; esac ;;
esac
)");
  REQUIRE(std::system(("chmod +x '" + folder.file("program") + "'").c_str()) == 0);
  const ProgramResult result = gpu_day(folder, "--program ./program --only validate-vgg16");
  CHECK(result.code == 1);
  std::string expected;
  for (const char* const capacity : {"0.5x", "0.7x", "0.9x"})
    expected += std::string{R"({"run":"good at )"} + capacity + R"(","result":{"outcome":"ok"}})" + "\n";
  CHECK(content_of(folder.file("gpu-day/validate-vgg16.jsonl")) == expected);
  CHECK_THAT(content_of(folder.file("gpu-day/validate-vgg16.log")),
             ContainsSubstring("late at 0.5x: no result, exit code 124: warning\n"));
  write_file(folder.file("program"), "#!/bin/sh\n");
  REQUIRE(std::system(("chmod +x '" + folder.file("program") + "'").c_str()) == 0);
  CHECK_THAT(gpu_day(folder, "--program ./program --only validate-vgg16").out,
             ContainsSubstring("failed with 1: no policies to execute\n"));
}

TEST_CASE("the script for a day with a GPU refuses what it does not know") {
  const ScratchFolder folder;
  const ProgramResult unknown = gpu_day(folder, "--programm x");
  CHECK(unknown.code == 2);
  CHECK(unknown.err ==
        "gpu_day.sh: unknown option '--programm'; expected the options that the head of the script lists\n");
  CHECK(gpu_day(folder, "--limit soon").code == 2);
  CHECK(gpu_day(folder, "--program /no/such/file --only system").err ==
        "gpu_day.sh: no program at '/no/such/file'; expected the options that the head of the script lists\n");
}
