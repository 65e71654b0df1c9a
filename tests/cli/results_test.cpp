// Commands about databases of results: sweep --shard, merge, resume, query.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::results_test {

using Catch::Matchers::StartsWith;
using tidepool::tests::write_random_trace;
using Json = nlohmann::json;

namespace {

std::vector<std::string> sweep_of(const std::string& trace, const std::string& database) {
  return {"sweep",     trace, "--policy", "none,lru-swap,lru", "--capacity", "0.4x..1.0x/7", "-j", "2",
          "--no-plot", "-o",  database};
}

void add(std::vector<std::string>& arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
}

/// The keys and main results of all runs. They must not depend on the worker that did a run.
std::string results(const std::string& database) {
  const ProgramResult result = run_program(
      {"query", database, "SELECT run_key, outcome, makespan_ns, peak_bytes, actions FROM runs ORDER BY run_key",
       "--to", "csv"});
  CHECK(result.code == 0);
  return result.out;
}

/// Limits the size of files that this process and its children write, as long as the object exists.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace

TEST_CASE("shards, merged and gone on with, end with the result set of one sweep") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), whole = scratch.file("whole.sqlite"),
                    one = scratch.file("1.sqlite"), two = scratch.file("2.sqlite"), all = scratch.file("all.sqlite");
  REQUIRE(run_program(sweep_of(trace, whole)).code == 0);
  for (const std::string& shard : {one, two}) {
    std::vector<std::string> arguments = sweep_of(trace, shard);
    add(arguments, {"--shard", shard == one ? "1/2" : "2/2"});
    REQUIRE(run_program(arguments).code == 0);
  }
  CHECK(run_program({"sweep", one, "-o", all}).code == 0);
  CHECK(results(all) != results(whole));
  const ProgramResult merged = run_program({"sweep", one, two, "-o", all});
  CHECK(merged.code == 0);
  CHECK(merged.err.ends_with("; 21 runs in " + all + "\n"));
  CHECK(results(all) == results(whole));

  const ProgramResult nothing_left = run_program({"sweep", all, "--no-plot"});
  CHECK(nothing_left.code == 0);
  CHECK(nothing_left.err.starts_with("0 runs in "));
  const ProgramResult resumed = run_program({"sweep", one, "--no-plot"});
  CHECK(resumed.code == 0);
  CHECK(results(one) != results(whole));  // resume does only the runs of the shard
}

TEST_CASE("merge refuses a damaged database before it takes anything from another") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), whole = scratch.file("whole.sqlite"),
                    damaged = scratch.file("damaged.sqlite"), all = scratch.file("all.sqlite");
  REQUIRE(run_program(sweep_of(trace, whole)).code == 0);
  std::string bytes = content_of(whole);
  REQUIRE(bytes.size() > 3 * 4096);
  std::fill(bytes.begin() + 4096, bytes.end(), '\xff');  // all pages but the first, which identifies the file
  std::ofstream{damaged, std::ios::binary} << bytes;
  const ProgramResult result = run_program({"sweep", whole, damaged, "-o", all});
  CHECK(result.code == 2);
  CHECK(result.err.starts_with("tidepool: " + damaged + ": damaged: "));
  CHECK(result.err.ends_with("; expected a whole database of sweep results\n"));
  CHECK(Database{all}.runs() == 0);
}

TEST_CASE("resume does the rest of a sweep from any folder, and refuses another trace") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), whole = scratch.file("whole.sqlite"),
                    half = scratch.file("half.sqlite");
  REQUIRE(run_program(sweep_of(trace, whole)).code == 0);
  {
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(scratch.file(""));
    std::vector<std::string> arguments = sweep_of("random-1.jsonl", "half.sqlite");
    add(arguments, {"--shard", "1/2"});
    REQUIRE(run_program(arguments).code == 0);
    std::filesystem::current_path(before);
  }
  CHECK(run_program({"sweep", half, "--no-plot"}).code == 0);
  std::ofstream{trace} << to_jsonl(tests::random_trace(2, 60));
  const ProgramResult changed = run_program({"sweep", half});
  CHECK(changed.code == 2);
  CHECK(changed.err.starts_with("tidepool: random-1.jsonl: content "));
  CHECK(changed.err.find("; the sweep was over ") != std::string::npos);
}

TEST_CASE("resume refuses a machine file that has changed") {
  const ScratchFolder scratch;
  const std::string database = scratch.file("r.sqlite"), machine = scratch.file("mine,too.json");
  const std::string numbers = run_program({"machines", "a100-pcie4", "--file"}).out;
  std::ofstream{machine} << numbers;
  std::vector<std::string> arguments = sweep_of(write_random_trace(scratch, 1, 60), database);
  add(arguments, {"--machine", "g10-a100," + machine, "--shard", "1/2"});
  REQUIRE(run_program(arguments).code == 0);
  REQUIRE(run_program({"sweep", database, "--no-plot"}).code == 0);
  Json changed = Json::parse(numbers);
  const std::string name = changed["name"];
  changed["capacity"] = "7GiB";
  std::ofstream{machine} << changed;
  const ProgramResult refused = run_program({"sweep", database});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, StartsWith("tidepool: machine " + name + ": numbers "));
  CHECK(refused.err.find("; the sweep was over ") != std::string::npos);
}

TEST_CASE("resume refuses a file of an option that has changed") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), database = scratch.file("r.sqlite"),
                    layout = scratch.file("places.jsonl");
  REQUIRE(run_program({"pack", trace, "--pool", "tide-pool", "--layout-out", layout}).code == 0);
  REQUIRE(run_program({"sweep", trace, "--pool", "layout(file=" + layout + "),best-fit", "--policy", "none",
                       "--capacity", "2x,3x", "--no-plot", "-o", database})
              .code == 0);
  REQUIRE(run_program({"sweep", database, "--no-plot"}).code == 0);
  const std::string other = write_random_trace(scratch, 2, 60);
  REQUIRE(run_program({"pack", other, "--pool", "tide-pool", "--layout-out", layout}).code == 0);
  const ProgramResult refused = run_program({"sweep", database});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, StartsWith("tidepool: " + layout + ": content "));
  CHECK(refused.err.find("; the sweep was over ") != std::string::npos);
}

TEST_CASE("a file that may not grow ends a sweep with advice, and nothing is lost") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), whole = scratch.file("whole.sqlite"),
                    full = scratch.file("full.sqlite");
  std::vector<std::string> arguments = sweep_of(trace, whole);
  arguments[5] = "0.4x..1.0x/200";
  arguments.insert(arguments.end() - 2, "--first");  // runs are shorter, and the file grows as much
  REQUIRE(run_program(arguments).code == 0);
  arguments.back() = full;
  {
    const FileLimit limit{120'000};
    const ProgramResult stopped = run_program(arguments);
    CHECK(stopped.code == 1);
    CHECK(stopped.out.empty());
    CHECK(stopped.err.starts_with("tidepool: " + full + ": d"));  // "disk I/O error" or "database or disk is full"
    CHECK(stopped.err.ends_with(" of 600 runs are in " + full + "; the same command goes on from there\n"));
  }
  REQUIRE(run_program(arguments).code == 0);
  CHECK(results(full) == results(whole));
}

TEST_CASE("a disk that is full when the database is made leaves no file") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), database = scratch.file("new/r.sqlite");
  std::filesystem::create_directory(scratch.file("new"));
  {
    const FileLimit limit{10'000};
    const ProgramResult stopped = run_program(sweep_of(trace, database));
    CHECK(stopped.code == 1);
    CHECK(stopped.err.starts_with("tidepool: " + database + ": d"));  // "disk I/O error" or "database or disk is full"
  }
  CHECK(std::filesystem::is_empty(scratch.file("new")));
}

TEST_CASE("a query that does not end is ended, and one without an end of memory is cut") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), database = scratch.file("r.sqlite");
  REQUIRE(run_program(sweep_of(trace, database)).code == 0);
  const std::string endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) ";
  const auto said = [&](const std::string& sql, const std::string& limit) {
    return run_program({"query", database, sql, "--to", "csv", "--time-limit", limit});
  };
  const ProgramResult silent = said(endless + "SELECT count(*) AS n FROM c", "1s"),
                      rows = said(endless + "SELECT x FROM c", "200ms");
  CHECK(silent.code == 1);
  CHECK(silent.out == "n\n");
  CHECK(silent.err == "query: more than 1 s; there may be more rows\n");
  CHECK(rows.code == 1);
  CHECK(rows.out.starts_with("x\n1\n2\n"));
  const ProgramResult table = run_program({"query", database, endless + "SELECT x FROM c"});
  CHECK(table.code == 1);
  CHECK(table.err == "query: a table has at most 4,000,000 values; there may be more rows\n");
  const ProgramResult large = run_program({"query", database, "SELECT zeroblob(100000000)"});
  CHECK(large.code == 1);
  CHECK(large.err == "tidepool: " + database + ": string or blob too big\n");
  const std::string file = scratch.file("out.csv");
  CHECK(run_program({"query", database, endless + "SELECT x FROM c", "-o", file, "--time-limit", "1s"}).code == 1);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("tidepool query writes tables, CSV and JSON lines") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), database = scratch.file("r.sqlite");
  REQUIRE(run_program(sweep_of(trace, database)).code == 0);
  const auto said = [&](const std::string& sql, const std::string& format) {
    const ProgramResult result = run_program({"query", database, sql, "--to", format});
    CHECK(result.code == 0);
    return result.out;
  };
  const std::string odd = "SELECT 'a,\"b' AS name, 1.5 AS x, 7 AS n, NULL AS gone, '' AS empty";
  CHECK(said(odd, "csv") == "name,x,n,gone,empty\n\"a,\"\"b\",1.5,7,,\"\"\n");
  CHECK(said("SELECT max(1, 2), 3 AS n", "csv") == "\"max(1, 2)\",n\n2,3\n");
  CHECK(said(odd, "jsonl") == "{\"name\":\"a,\\\"b\",\"x\":1.5,\"n\":7,\"gone\":null,\"empty\":\"\"}\n");
  CHECK(said("SELECT 'ab' AS t, 10 AS count UNION ALL SELECT 'c', 9", "table") == "t   count\nab     10\nc       9\n");
  std::string accents, cut;  // a character of two bytes is as wide as one of one byte
  for (int i = 0; i < 61; ++i) (i < 60 ? cut : accents) += "\xC3\xBC";
  accents += cut;
  CHECK(said("SELECT '" + cut + "' AS t, 1 AS n", "table") == "t" + std::string(61, ' ') + "n\n" + cut + "  1\n");
  CHECK(said("SELECT '" + accents + "' AS t", "table") == "t\n" + cut.substr(0, 57 * 2) + "...\n");
  const std::string bytes = "SELECT x'00ff' AS b, CAST(x'41ff' AS TEXT) AS t, 'a' || char(27, 7, 155, 8238) AS c";
  CHECK(said(bytes, "jsonl").find("\"b\":\"x'00ff'\",\"t\":\"x'41ff'\"") != std::string::npos);
  CHECK(said(bytes, "table") == "b        t        c\nx'00ff'  x'41ff'  a\\x1b\\x07\\x9b\\u202e\n");
  std::istringstream lines{said("runs", "jsonl")};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(Json::parse(line).at("version") == build_version());
  CHECK(count == 21);
  const std::string file = scratch.file("out.csv");
  CHECK(run_program({"query", database, "frontier", "--to", "csv", "-o", file}).code == 0);
  CHECK(content_of(file) == said("frontier", "csv"));
}

TEST_CASE("sweep --find prints the least memory of each policy, and resume goes on with it") {
  const ScratchFolder scratch;
  const std::string trace = paths::source_folder() + "/traces/samples/vgg16.tide", database = scratch.file("r.sqlite");
  const std::vector<std::string> arguments{"sweep",  trace,         "--policy", "none,lru-swap", "--pool", "ideal",
                                           "--find", "overhead<1%", "-o",       database};
  const ProgramResult result = run_program(arguments);
  CHECK(result.code == 0);
  CHECK(result.out.starts_with("\nvgg16.tide on a100-pcie4: least memory for overhead<1%, peak "));
  CHECK(result.out.find("\nnone      ideal     1  ") != std::string::npos);
  CHECK(result.out.find("       1x     0.00 %     0.00 %  ") != std::string::npos);
  std::vector<std::string> as_json = arguments;
  as_json.push_back("--json");
  const ProgramResult again = run_program(as_json);
  CHECK(again.code == 0);
  CHECK(again.err.starts_with("0 runs in "));
  std::istringstream lines{again.out};
  std::vector<Json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(Json::parse(line));
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].at("find") == "overhead<1%");
  CHECK(answers[0].at("found") == true);
  CHECK(answers[0].at("capacity_bytes") == answers[0].at("ideal_peak_bytes"));
  CHECK(answers[0].at("capacities") == 146);
  CHECK(answers[0].at("fails_above_bytes").empty());
  const ProgramResult resumed = run_program({"sweep", database});
  CHECK(resumed.out == result.out);
}

TEST_CASE("sweep --find answers for each of two machines of one name") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60);
  Json machine = Json::parse(run_program({"machines", "a100-pcie4", "--file"}).out);
  std::string machines;
  for (const char* rate : {"20GB/s", "1GB/s"}) {
    const std::string path = scratch.file(std::string{rate, 2} + ".json");
    machine["h2d"]["rate"] = rate;
    std::ofstream{path} << machine;
    machines += (machines.empty() ? "" : ",") + path;
  }
  const ProgramResult result =
      run_program({"sweep", trace, "--policy", "none", "--pool", "ideal", "--machine", machines, "--find", "outcome=ok",
                   "--json", "-o", scratch.file("r.sqlite")});
  CHECK(result.code == 0);
  INFO(result.err);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 2);
}

TEST_CASE("bad arguments of the commands about results are refused") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), none = scratch.file("none.sqlite"),
                    database = scratch.file("r.sqlite"), empty = scratch.file("empty.sqlite");
  REQUIRE(run_program(sweep_of(trace, database)).code == 0);
  std::ofstream{empty};
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(result.err == "tidepool: " + message + "\n");
  };
  refused(
      {"sweep", trace, "--shard", "4/3", "-o", none},
      "--shard: '4/3' is not a shard; expected INDEX/COUNT, whole numbers with INDEX from 1 to COUNT and COUNT up to "
      "100000, as in 2/8");
  CHECK_FALSE(std::filesystem::exists(none));
  refused({"sweep", trace, "--find", "overhead<1", "-o", none},
          "--find: 'overhead<1' is no objective; expected overhead<1%, gap<2% (or <=) or outcome=ok");
  refused({"sweep", trace, "--find", "outcome=ok", "--slurm", "-o", none},
          "--find: expected no --slurm; few runs are needed");
  refused({"sweep", database, "-o", ":memory:"},
          "-o: ':memory:' ends with the command; expected the name of a file, as in results.sqlite");
  refused({"sweep", database, trace, "-o", none},
          trace + ": is no database, as others are; expected traces, or databases alone");
  CHECK_FALSE(std::filesystem::exists(none));
  refused({"sweep", database, "--policy", "lru"},
          "--policy: " + database + " has the options of its sweep; expected --threads, --json, --no-plot only");
  refused({"sweep", database, "-o", none, "--policy", "lru"},
          "--policy: " + database + " is merged with others; expected --output, --any-version only");
  refused({"sweep", trace, "--any-version"}, "--any-version: expected databases to merge");
  refused(
      {"query", database, "nonsense"},
      "no table or view named 'nonsense'; known: best_policy, claims, failures, frontier, gap_to_bound, measurements, "
      "predicted_vs_measured, run_columns, runs, sweeps");
  refused({"query", database, "DROP TABLE runs"}, "'DROP TABLE runs' is no query; expected one SELECT");
  refused({"query", database, "SELECT 1 AS a, 2 AS a", "--to", "jsonl", "-o", none},
          "two columns are named 'a'; expected different names in JSON lines (AS gives another one)");
  CHECK_FALSE(std::filesystem::exists(none));
  const std::string before = scratch.file("before.csv");
  std::ofstream{before} << "before";
  const ProgramResult failed = run_program({"query", database, "SELECT json(policy) FROM runs", "-o", before});
  CHECK(failed.code == 1);
  CHECK(failed.err == "tidepool: " + database + ": malformed JSON\n");
  CHECK(content_of(before) == "before");
  refused({"query", database, "runs", "-o", scratch.file("no/out")},
          scratch.file("no/out") + ": cannot be written: No such file or directory");
  refused({"query", database, "runs", "-o", database}, database + ": is the database itself; expected another file");
  CHECK(run_program({"query", database, "runs"}).code == 0);
  refused({"query", database, "runs", "--to", "xml"}, "--to: 'xml' is not a format; expected table, csv or jsonl");
}

TEST_CASE("the message about a file that cannot be read says what it is, and which kind of file is expected") {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("folder"), empty = scratch.file("empty"), binary = scratch.file("binary"),
                    wide = scratch.file("wide"), trace = write_random_trace(scratch, 1, 60);
  std::filesystem::create_directory(folder);
  std::ofstream{empty};
  std::ofstream{binary} << std::string("\x01\0\x02\xf0", 4);
  std::ofstream{wide} << std::string("\xff\xfe{\0", 4);
  const auto said = [&](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(said({"info", folder}), StartsWith("tidepool: " + folder +
                                                ": a folder without kernels.config; expected a "
                                                "file, or a folder with G10's three tables\n"));
  CHECK_THAT(said({"info", empty}), StartsWith("tidepool: " + empty + ": is empty; expected a trace; known: "));
  CHECK_THAT(said({"info", binary}),
             StartsWith("tidepool: " + binary + ": binary data in no form that tidepool reads; known: "));
  CHECK_THAT(said({"info", wide}), StartsWith("tidepool: " + wide + ": is text in UTF-16; expected UTF-8; known: "));
  for (const auto& [path, what] :
       {std::pair{empty, "is empty"}, {binary, "is binary data"}, {wide, "is text in UTF-16"}}) {
    CHECK(said({"simulate", trace, "--machine", path}) ==
          fmt::format("tidepool: {}: {}; expected a machine file, as simulator/engine/machine/MACHINES.md describes\n",
                      path, what));
    CHECK(said({"validate", path, "--trace", trace}) == fmt::format("tidepool: {}: {}; expected a plan\n", path, what));
    CHECK(said({"query", path}) == fmt::format("tidepool: {}: {}; expected a database that sweep wrote\n", path, what));
  }
  CHECK_THAT(
      said({"simulate", trace, "--machine", folder}),
      StartsWith("tidepool: " + folder + ": is a directory; expected a machine file, or the name of a machine: "));
  CHECK(said({"query", folder}) == "tidepool: " + folder + ": is a directory; expected a database that sweep wrote\n");
  CHECK(said({"validate", folder, "--trace", trace}) == "tidepool: " + folder + ": is a directory; expected a file\n");
}

TEST_CASE("the message about a misspelt table of a database names the nearest one") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), database = scratch.file("r.sqlite");
  REQUIRE(run_program({"sweep", trace, "--policy", "none", "-o", database}).code == 0);
  const ProgramResult result = run_program({"query", database, "fronteir"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err,
             StartsWith("tidepool: no table or view named 'fronteir', did you mean 'frontier'?; known: best_policy, "));
}

}  // namespace tidepool::results_test
