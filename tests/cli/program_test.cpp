// Behaviour that all commands have in common.
#include "tests/program.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <iterator>
#include <regex>

#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tidepool::program_test {

namespace {

/// Exit code of `tidepool` with arguments and redirections as in a shell; -1 if a signal ended it.
int code_of(const std::string& words) {
  const int status = std::system(("'" + paths::program() + "' " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Exit code and stderr of `tidepool policies`, with its stdout redirected by the shell.
ProgramResult policies_to(const std::string& redirection) {
  const ScratchFolder scratch;
  const int code = code_of("policies " + redirection + " 2>'" + scratch.file("err") + "'");
  return {code, "", content_of(scratch.file("err"))};
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

TEST_CASE("messages that cannot be printed do not change the exit code") {
  const ScratchFolder scratch;
  const std::string trace = " '" + paths::source_folder() + "/traces/samples/unet.tide' ",
                    none = " '" + scratch.file("none") + "' ", output = " -o '" + scratch.file("a.tide") + "' ";
  for (const std::string redirection : {">/dev/null 2>/dev/full", ">/dev/null 2>&-"}) {
    INFO(redirection);
    CHECK(code_of("info" + trace + redirection) == 0);
    CHECK(code_of("info" + none + redirection) == 2);
    CHECK(code_of("import" + none + output + redirection) == 2);
    CHECK(code_of("sweep" + trace + "--policy lru --capacity 0.9x " + redirection) == 0);
    CHECK(code_of("record --torch --no-gpu" + output + "-- sh -c 'exit 9' " + redirection) == 9);
    CHECK_FALSE(std::filesystem::exists(scratch.file("a.raw")));
  }
  const std::string pipe = scratch.file("pipe");  // without a reader once it is open
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(code_of("info" + none + "3<>'" + pipe + "' 2>'" + pipe + "' 3<&-") == 2);
}

TEST_CASE("a command that is run has the standard streams that the program has") {
  const ScratchFolder scratch;
  const std::string record = "record --torch --no-gpu -o '" + scratch.file("a.tide") + "' -- sh -c ";
  // The job's exit code is 8, plus 1 if its stdin is open, 2 if its stdout is, and 4 if its stderr is.
  const std::string job =
      "'code=8; test -e /proc/self/fd/0 && code=$((code + 1)); test -e /proc/self/fd/1 && code=$((code + 2)); "
      "test -e /proc/self/fd/2 && code=$((code + 4)); exit $code' ";
  CHECK(code_of(record + job + "</dev/null >/dev/null 2>/dev/null") == 15);
  CHECK(code_of(record + job + "<&- >/dev/null 2>/dev/null") == 14);
  CHECK(code_of(record + job + "</dev/null >&- 2>/dev/null") == 13);
  CHECK(code_of(record + job + "</dev/null >/dev/null 2>&-") == 11);
  CHECK(code_of(record + job + "<&- >&- 2>&-") == 8);
}

TEST_CASE("an output that cannot be written is refused before the work begins, and is not made") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/unet.tide", nowhere = scratch.file("none/a"),
                    folder = scratch.file("folder");
  std::filesystem::create_directory(folder);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"import", trace, "-o"},
                                             {"make", "gpt", "-o"},
                                             {"simulate", trace, "--first", "--plan-out"},
                                             {"pack", trace, "--pool", "tide-pool", "--layout-out"},
                                             {"order", trace, "-o"},
                                             {"report", trace, "-o"},
                                             {"calibrate", "-o"}}) {
    INFO(words[0]);
    const auto refused = [&](const std::string& output) {
      std::vector<std::string> all = words;
      all.push_back(output);
      const ProgramResult result = run_program(all);
      CHECK(result.code == 2);
      CHECK(result.out == "");
      return result.err;
    };
    CHECK(refused(nowhere) == "tidepool: " + nowhere + ": cannot be written: No such file or directory\n");
    CHECK(refused(folder) == "tidepool: " + folder + ": is a directory; expected a file\n");
    CHECK(refused("-") ==
          "tidepool: '-' is no file, nor the standard output; expected a name (./- for a file of this name)\n");
  }
  const std::string ran = scratch.file("ran");
  const ProgramResult result = run_program({"record", "--torch", "--no-gpu", "-o", folder, "--", "touch", ran});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: " + folder + ": is a directory; expected a file\n");
  CHECK_FALSE(std::filesystem::exists(ran));
}

TEST_CASE("a full disk ends every command that writes a file with 1, and names the file") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/unet.tide";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"import", trace, "-o", "/dev/full"},
                                             {"export", trace, "--to", "jsonl", "-o", "/dev/full"},
                                             {"pack", trace, "--pool", "tide-pool", "--layout-out", "/dev/full"},
                                             {"simulate", trace, "--first", "--plan-out", "/dev/full"},
                                             {"report", trace, "-o", "/dev/full"}}) {
    const ProgramResult result = run_program(words);
    INFO(words[0]);
    CHECK(result.code == 1);
    CHECK(result.err == "tidepool: /dev/full: cannot be written: No space left on device\n");
  }
  const ProgramResult nowhere = run_program({"import", trace, "-o", scratch.file("none/a.tide")});
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err == "tidepool: " + scratch.file("none/a.tide") + ": cannot be written: No such file or directory\n");
}

TEST_CASE("no name controls the terminal: of a file, in a trace, in a message") {
  const ScratchFolder scratch;
  const std::string text = scratch.file("a.jsonl"), odd = "o\x1b[31m\x07\xc2\x9b\u202e",
                    trace = scratch.file(odd + ".tide");
  std::ofstream{text} << R"({"tidepool":1,"meta":{"m\u001b[31m\u0000":"v\u001b]0;\u0007"}}
{"alloc":0,"size_bytes":1048576,"name":"b\u001b[31m"}
{"run":"op\u001b[31m\u0007\u0000","module":"m\u009b31m","line":"\u202el.py:3","phase":"forward","duration_ns":1000,"uses":[[0,"write","schema"]]}
{"alloc":1,"size_bytes":1048576}
{"run":"a\u0007","phase":"backward","duration_ns":1000,"uses":[[0,"read","schema"],[1,"write","schema"]]}
{"free":0}
)";
  REQUIRE(run_program({"import", text, "-o", trace}).code == 0);
  const std::vector<std::vector<std::string>> commands{
      {"info", trace},
      {"info", trace, "--structure"},
      {"explain", trace},
      {"fit", trace, "--device", "t4"},
      {"simulate", trace, "--policy", "dtr", "--capacity", "1.5MiB", "--decisions"},
      {"sweep", trace, "--policy", "none", "--no-plot"},
      {"bound", trace, "--capacity", "0.9x"},
      {"pack", trace},
      {"simulate", "--view", trace},
      {"diff", trace, text},
      {"order", trace, "-o", trace + "2"},
      {"report", trace, "-o", trace + ".html"},
      {"policies", odd},
      {"simulate", trace, "--policy", odd},
      {"simulate", trace, "--machine", odd},
      {"explain", trace, "--at", odd},
      {"info", odd},
      {odd}};
  for (const std::vector<std::string>& command : commands) {
    INFO(command.front());
    const ProgramResult result = run_program(command);
    for (const std::string& said : {result.out, result.err}) {
      CHECK(said.find_first_of(std::string_view{"\x1b\x07\0", 3}) == std::string::npos);
      CHECK(said.find("\xc2\x9b") == std::string::npos);
      CHECK(said.find("\u202e") == std::string::npos);
    }
  }
}

TEST_CASE("every command that places by a layout refuses a damaged one") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/unet.tide", layout = scratch.file("a.layout");
  std::ofstream{layout} << R"({"tidepool_layout":1,"alignment_bytes":512,"height_bytes":512,"lower_bound_bytes":0,)"
                        << R"("existing":0,"requests":1})"
                        << "\n"
                           R"({"size_bytes":4,"offset_bytes":-8})"
                           "\n";
  const std::string pool = "layout(file=" + layout + ")", results = scratch.file("r.sqlite");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"pack", trace, "--pool", pool},
                                             {"simulate", trace, "--pool", pool},
                                             {"sweep", trace, "--pool", pool, "-o", results}}) {
    const ProgramResult result = run_program(words);
    INFO(words[0]);
    CHECK(result.code == 2);
    CHECK(result.err == "tidepool: " + layout + ":2: 'offset_bytes' is -8; expected 0 to 4611686018427387904\n");
  }
  CHECK(content_of(results).empty());
}

TEST_CASE("a text that is no unsigned number of 64 bits is refused where one is expected") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"info", "x.tide", "--largest"}, {"simulate", "x.tide", "--map", "--at"}})
    for (const std::string number : {"-1", "+1", "x", "18446744073709551616"}) {
      std::vector<std::string> words = command;
      words.push_back(number);
      const ProgramResult result = run_program(words);
      CHECK(result.code == 2);
      CHECK(result.err == "tidepool: " + command.back() + ": '" + number +
                              "' is no unsigned number; expected a whole number from 0 to 18446744073709551615\n");
    }
}

TEST_CASE("an option with an empty value is refused, and not taken as no option") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/unet.tide";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"simulate", trace, "--plan-out"},
                                             {"simulate", trace, "--iterations"},
                                             {"sweep", trace, "--shard"},
                                             {"sweep", trace, "--find"},
                                             {"sweep", trace, "-j"},
                                             {"order", trace, "-o"}}) {
    std::vector<std::string> all = words;
    all.emplace_back();
    const ProgramResult result = run_program(all);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    CHECK(result.err == "tidepool: " + words.back() + ": the value is empty; expected one\n");
  }
  const auto message = [](const std::vector<std::string>& words) {
    const ProgramResult result = run_program(words);
    CHECK(result.code == 2);
    return result.err;
  };
  const std::string no_name = "tidepool: the name of the database is empty; expected one, as in results.sqlite\n";
  CHECK(message({"sweep", trace, "-o", ""}) == no_name);
  CHECK(message({"query", ""}) == no_name);
  CHECK(message({"sweep", trace, "-o", "-"}) ==
        "tidepool: '-' is no database, nor the standard output; expected a name (./- for a database of this name)\n");
  CHECK(message({"report", trace, "-o", ""}) ==
        "tidepool: -o: the name of the page is empty; expected one, as in report.html\n");
}

TEST_CASE("names of before still work, and name the new ones") {
  const std::string trace = paths::source_folder() + "/traces/samples/unet.tide";
  const ProgramResult old = run_program({"structure", trace}), now = run_program({"info", "--structure", trace});
  CHECK(old.code == 0);
  CHECK(old.out == now.out);
  CHECK(old.err.starts_with(
      "tidepool: 'structure' is 'info --structure' now; the old name goes with the next release\n"));
  const std::vector<std::string> run{"simulate", trace, "--policy", "dtr-eq", "--capacity", "0.6x"};
  std::vector<std::string> before = run, after = run;
  before.emplace_back("--explain");
  after.emplace_back("--decisions");
  const auto decisions = [](const std::string& out) { return out.substr(0, out.find("outcome")); };  // no wall times
  CHECK(decisions(run_program(before).out) == decisions(run_program(after).out));
  CHECK(run_program({"autoswap", "a", "b"}).err ==
        "tidepool: no command named 'autoswap' any more; expected simulate --policy 'autoswap(score=doa)'\n");
  const ProgramResult gone = run_program({"optimum", trace, "--capacity", "0.6x"});
  CHECK(gone.code == 2);
  CHECK(gone.err ==
        "tidepool: no command named 'optimum' any more; expected bound, whose bounds hold for every plan\n");
}

TEST_CASE("--help lists what most people need, and --help-all every option") {
  const std::string most = run_program({"sweep", "--help"}).out, all = run_program({"sweep", "--help-all"}).out;
  CHECK(most.find("--slurm") == std::string::npos);
  CHECK(most.find("14 options more: tidepool sweep --help-all\n") != std::string::npos);
  CHECK(all.find("--slurm") != std::string::npos);
  const std::string commands = run_program({"--help"}).out;
  CHECK(commands.find("record") < commands.find("fit"));
  CHECK(commands.find("  run ") < commands.find("More:"));
}

TEST_CASE("there are at most 24 commands, and their helps list at most 108 options together") {
  const auto count = [](const std::string& text, const std::regex& line) {
    return std::distance(std::sregex_iterator{text.begin(), text.end(), line}, std::sregex_iterator{});
  };
  const std::string program = run_program({"--help"}).out;
  const std::regex command{"\n  ([a-z]+) +[a-z]"};
  std::ptrdiff_t commands = 0, options = 0;
  for (std::sregex_iterator found{program.begin(), program.end(), command}, end; found != end; ++found, ++commands)
    options += count(run_program({(*found)[1], "--help"}).out, std::regex{"\n  (-[a-zA-Z],)?--(?!help)"});
  CHECK(commands > 20);
  CHECK(commands <= 24);
  CHECK(options <= 108);
}

TEST_CASE("an unknown option is refused with the nearest known one") {
  const ProgramResult near = run_program({"simulate", "x.tide", "--polcy", "lru"});
  CHECK(near.code == 2);
  CHECK(near.err ==
        "tidepool: no option named '--polcy', did you mean '--policy'? (tidepool simulate --help lists them)\n");
  const ProgramResult far = run_program({"info", "x.tide", "--colour=red"});
  CHECK(far.code == 2);
  CHECK(far.err == "tidepool: no option named '--colour' (tidepool info --help lists them)\n");
}

TEST_CASE("missing and surplus arguments are named in order, with the command that lists all") {
  const auto refused = [](const std::vector<std::string>& words) {
    const ProgramResult result = run_program(words);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refused({}) == "tidepool: no command; expected one (tidepool --help lists them)\n");
  CHECK(refused({"--plugin"}) == "tidepool: --plugin: 1 required TEXT missing (tidepool --help lists all arguments)\n");
  CHECK(refused({"simulate"}) == "tidepool: trace is required (tidepool simulate --help lists all arguments)\n");
  CHECK(refused({"simulate", "x.tide", "--capacity"}) ==
        "tidepool: --capacity: 1 required TEXT missing (tidepool simulate --help lists all arguments)\n");
  CHECK(refused({"record", "--"}) == "tidepool: command is required (tidepool record --help lists all arguments)\n");
  CHECK(refused({"record", "--device", "rtx-3090", "--", "python3", "x.py"}) ==
        "tidepool: --device requires --dry (tidepool record --help lists all arguments)\n");
  CHECK(refused({"info", "a", "b"}) == "tidepool: 'b' is not expected (tidepool info --help lists all arguments)\n");
  CHECK(refused({"info", "a", "b", "c"}) ==
        "tidepool: 'b', 'c' are not expected (tidepool info --help lists all arguments)\n");
}

}  // namespace tidepool::program_test
