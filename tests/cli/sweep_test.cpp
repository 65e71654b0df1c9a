#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"

namespace tidepool::sweep_test {

using tidepool::tests::write_random_trace;
using Json = nlohmann::json;

namespace {

/// Starts the program and does not wait for it. Its stderr goes to `err`.
pid_t start_program(std::vector<std::string> arguments, const std::string& err) {
  const pid_t child = fork();
  if (child != 0) return child;
  arguments.insert(arguments.begin(), paths::program());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  execv(paths::program().c_str(), argv.data());
  _exit(127);
}

/// The output of a query, a line for each row, with | after each value; "" while the database cannot be read.
std::string query(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  std::string text;
  if (sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    sqlite3_busy_timeout(handle, 10'000);
    const auto add = [](void* out, int count, char** values, char**) {
      for (int i = 0; i < count; ++i) *static_cast<std::string*>(out) += std::string{values[i] ? values[i] : ""} + "|";
      *static_cast<std::string*>(out) += '\n';
      return 0;
    };
    sqlite3_exec(handle, sql, add, &text, nullptr);
  }
  sqlite3_close(handle);
  return text;
}

/// All rows, without the columns of wall times.
std::string dump(const std::string& path) {
  std::string columns = query(path,
                              "SELECT group_concat(name) FROM pragma_table_info('runs') WHERE name NOT IN "
                              "('plan_ns', 'actions_per_second')");
  columns = columns.substr(0, columns.find('|'));
  return query(path, ("SELECT " + columns + " FROM runs ORDER BY run_key").c_str());
}

std::size_t count(const std::string& path) {
  const std::string text = query(path, "SELECT count(*) FROM runs");
  return text.empty() ? 0 : std::stoul(text);
}

/// Starts a program that sweeps into `database` and, when that has a row, sends the program a signal.
/// @return  its status; -1 if the database had no row within at least two minutes
int signal_at_first_row(const std::vector<std::string>& arguments, const std::string& database, const std::string& err,
                        int signal) {
  const pid_t child = start_program(arguments, err);
  bool began = false;
  for (int i = 0; i < 12'000 && !began; ++i) {
    began = count(database) >= 1;
    if (!began) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  kill(child, began ? signal : SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return began ? status : -1;
}

/// As signal_at_first_row(). On a busy machine, the sweep may end before the signal is sent; then it is done again. The
/// last of ten sweeps counts in any case.
int signal_before_end(const std::vector<std::string>& arguments, const std::string& database, const std::string& err,
                      int signal) {
  int status = 0;
  for (int i = 0; i < 10 && status == 0; ++i) {
    std::filesystem::remove(database);
    status = signal_at_first_row(arguments, database, err, signal);
  }
  return status;
}

/// A sweep of 240 runs, each a few milliseconds long.
std::vector<std::string> long_sweep(const std::string& trace, const std::string& database,
                                    const std::string& threads = "2") {
  return {"sweep",
          trace,
          "--pool",
          "best-fit,first-fit,ideal",
          "--policy",
          "lru-swap,largest",
          "--capacity",
          "0.5x..1.0x/40",
          "--overhead-limit",
          "3.0",
          "--first",
          "-j",
          threads,
          "--json",
          "-o",
          database};
}

}  // namespace

TEST_CASE("a sweep that is killed goes on to the same results as one that is not") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 6, 3'000);
  const std::string whole = scratch.file("whole.sqlite"), killed = scratch.file("killed.sqlite");
  const ProgramResult at_once = run_program(long_sweep(trace, whole));
  REQUIRE(at_once.code == 0);
  REQUIRE(count(whole) == 240);

  const int status = signal_before_end(long_sweep(trace, killed, "1"), killed, scratch.file("err"), SIGKILL);
  REQUIRE(status != -1);
  REQUIRE(WIFSIGNALED(status));
  const std::size_t kept = count(killed);
  REQUIRE(kept < 240);

  const ProgramResult resumed = run_program(long_sweep(trace, killed));
  CHECK(resumed.code == 0);
  CHECK(resumed.err.find(std::to_string(240 - kept) + " runs in ") == 0);
  CHECK(resumed.err.find("; " + std::to_string(kept) + " were there already; ") != std::string::npos);
  CHECK(dump(killed) == dump(whole));
}

TEST_CASE("Ctrl-C and SIGTERM keep finished runs and print how to go on") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 6, 3'000);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string database = scratch.file(fmt::format("{}.sqlite", signal));
    const int status = signal_before_end(long_sweep(trace, database, "1"), database, scratch.file("err"), signal);
    REQUIRE(status != -1);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + signal);
    CHECK(content_of(scratch.file("err")) == fmt::format("interrupted: {} of 240 runs are in {}; the same command goes "
                                                         "on from there\n",
                                                         count(database), database));
  }
}

TEST_CASE("SIGTERM ends a sweep at once, also in the middle of a long run") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 6, 3'000), database = scratch.file("r.sqlite");
  const auto begin = std::chrono::steady_clock::now();
  const int status = signal_at_first_row({"sweep", trace, "--policy", "none,tide-remat(effort=1000000000)", "--pool",
                                          "ideal", "--capacity", "0.6x", "-j", "1", "-o", database},
                                         database, scratch.file("err"), SIGTERM);
  REQUIRE(status != -1);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 143);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes{2});  // the run would take days
  CHECK(content_of(scratch.file("err")) ==
        fmt::format("interrupted: 1 of 2 runs are in {}; the same command goes on from there\n", database));
}

TEST_CASE("names that are not UTF-8 are refused where they would be kept, and replaced where they are shown") {
  const ScratchFolder scratch;
  const std::string named = write_random_trace(scratch, 1, 60), odd = scratch.file("\xff.tide");
  std::filesystem::copy_file(named, odd);
  const std::string database = scratch.file("r.sqlite");
  const ProgramResult swept = run_program({"sweep", odd, "--policy", "none", "-o", database});
  CHECK(swept.code == 2);
  CHECK(swept.err == "tidepool: " + odd + ": its name is not UTF-8; expected a name that a database can keep\n");
  CHECK_FALSE(std::filesystem::exists(database));
  for (const char* command : {"info", "simulate"}) {
    const ProgramResult shown = run_program({command, odd, "--json"});
    CHECK(shown.code == 0);
    CHECK(nlohmann::json::accept(shown.out));
  }
}

TEST_CASE("tidepool sweep prints a table and a plot for each trace") {
  const ScratchFolder scratch;
  const std::string one = write_random_trace(scratch, 1, 60), two = write_random_trace(scratch, 2, 60);
  const ProgramResult result =
      run_program({"sweep", one, two, one, "--policy", "none,lru-swap", "--capacity", "0.4x..1.2x/5", "-j", "2"});
  CHECK(result.code == 0);
  CHECK(result.err.starts_with(one + ": the same step as " + one + "; left out\n20 runs in "));
  CHECK(result.err.find("; nothing is kept without -o FILE\n") != std::string::npos);
  for (const char* name : {"random-1.jsonl", "random-2.jsonl"}) {
    CHECK(result.out.find("\n" + std::string{name} + " on a100-pcie4: peak ") != std::string::npos);
    CHECK(result.out.find("\n" + std::string{name} + " on a100-pcie4: overhead against memory") != std::string::npos);
  }
  std::istringstream lines{result.out};
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("tidepool sweep --json prints each run on a line, in the same order on any number of threads") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60);
  const auto lines_with = [&](const std::string& threads) {
    const ProgramResult result =
        run_program({"sweep", trace, "--pool", "best-fit,ideal", "--policy", "none,lru-swap,random", "--capacity",
                     "0.4x,1x", "-j", threads, "--json"});
    CHECK(result.code == 0);
    std::vector<std::string> lines;
    std::istringstream text{result.out};
    for (std::string line; std::getline(text, line);) {
      Json run = Json::parse(line);
      run.erase("plan_ns");
      run.erase("actions_per_second");
      lines.push_back(run.dump());
    }
    return lines;
  };
  const std::vector<std::string> lines = lines_with("1");
  CHECK(lines.size() == 12);
  CHECK(lines_with("4") == lines);
}

TEST_CASE("bad arguments of sweep are refused before anything runs") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60), notes = scratch.file("notes.txt");
  std::ofstream{notes} << std::string(5000, 'x');
  const auto refused = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {"sweep", trace});
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(result.err == "tidepool: " + message + "\n");
  };
  refused({"-j", "0"}, "-j: '0' is not a number of threads; expected 1 to 1024");
  refused({"--backend", "cuda"}, "--backend: 'cuda' is for --validate, which is not given; expected both");
  refused({"-o", notes}, notes + ": not a database of sweep results; expected a new file or one that sweep wrote");
  refused({"--capacity", "0.3x..1.0x"},
          "--capacity: '0.3x..1.0x' is not a range; expected FIRST..LAST/COUNT, two shares or two sizes and a whole "
          "number "
          "from 2 to 10000, as in 0.3x..1.0x/8");
}

TEST_CASE("sweep --find tries only the machine's memory if --capacity asks for it") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 1, 60);
  const ProgramResult result = run_program({"sweep", trace, "--find", "outcome=ok", "--capacity", "machine"});
  INFO(result.out);
  CHECK(result.code == 0);
  CHECK(result.err.starts_with("1 run in "));
}

TEST_CASE("a sweep has its best plans executed and keeps the measurements") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 3, 60), results = scratch.file("r.sqlite");
  const std::vector<std::string> sweep{"sweep",     trace, "--policy", "none,lru-swap,dtr", "--capacity", "0.8x,1x,2x",
                                       "--no-plot", "-o",  results,    "--validate",        "2"};
  const ProgramResult host = run_program(sweep);
  INFO(host.err);
  CHECK(host.code == 0);
  CHECK_THAT(host.out, ContainsSubstring(", executed by host\npolicy "));
  CHECK(query(results, "SELECT count(*), min(outcome), sum(corrupt_bytes), min(backend) FROM measurements") ==
        "2|ok|0|host|\n");
  // The plans were those of the fastest runs at the two least capacities, and each had its predicted peak.
  CHECK(query(results,
              "SELECT count(*) FROM measurements JOIN runs USING (run_key) WHERE measured_peak_bytes = "
              "peak_bytes AND makespan_ns = (SELECT min(makespan_ns) FROM runs AS other WHERE "
              "other.capacity_bytes = runs.capacity_bytes AND other.outcome = 'ok')") == "2|\n");

  setenv("LD_LIBRARY_PATH", tests::fake_cuda_folder().c_str(), 1);
  setenv("TIDEPOOL_FAKE", "seed=1", 1);
  std::vector<std::string> device = sweep;
  device.insert(device.end(), {"--backend", "cuda"});
  const ProgramResult cuda = run_program(device);
  setenv("TIDEPOOL_FAKE", "devices=0", 1);
  const ProgramResult none = run_program(device);
  unsetenv("LD_LIBRARY_PATH");
  INFO(cuda.err);
  CHECK(cuda.code == 0);
  CHECK(query(results, "SELECT count(*), count(measured_ns), min(device) FROM measurements WHERE backend = 'cuda'") ==
        "6|6|fake, driver for CUDA 13.0|\n");
  CHECK(none.code == 2);
  CHECK(none.err == "tidepool: --backend: cuda: there is no device 0; the driver knows 0\n");
  device.push_back("--json");
  CHECK(run_program(device).err == "tidepool: --validate: expected without --json, --slurm and --hosts\n");
}

TEST_CASE("a sweep has all its plans executed and timed on the host") {
  const ScratchFolder scratch;
  const std::string trace = write_random_trace(scratch, 3, 60), results = scratch.file("r.sqlite");
  const std::vector<std::string> sweep{
      "sweep", trace, "--policy", "none,lru-swap,dtr", "--capacity", "0.1x,0.8x,2x", "--no-plot", "-o", results};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), sweep.begin(), sweep.end());
    return run_program(more);
  };
  const ProgramResult timed = with({"--validate", "all", "--move"});
  INFO(timed.err);
  CHECK(timed.code == 0);
  CHECK(query(results,
              "SELECT count(*) = 3 * (SELECT count(*) FROM runs WHERE outcome = 'ok'), count(*) > 9, "
              "min(measured_ns) > 0 FROM measurements") == "1|1|1|\n");
  CHECK(query(results,
              "SELECT count(*) > 0, min(error) >= 0 FROM predicted_vs_measured JOIN runs USING (run_key) WHERE "
              "swap_out_bytes + swap_in_bytes = 0") == "1|1|\n");  // no op ends early
  const std::string copying =
      query(results, "SELECT count(*) FROM runs WHERE outcome = 'ok' AND swap_out_bytes + swap_in_bytes > 0");
  CHECK_THAT(timed.out,
             ContainsSubstring("\nplans that copy: " + copying.substr(0, copying.find('|')) + " measured, "));

  CHECK(with({"--move"}).err == "tidepool: --move: expected --validate with --backend host\n");
  CHECK(with({"--validate", "all", "--backend", "cuda", "--move"}).err ==
        "tidepool: --move: expected --validate with --backend host\n");
  for (const std::string count : {"0", "2.5", "every"}) {
    const ProgramResult refused = with({"--validate", count});
    CHECK(refused.code == 2);
    CHECK(refused.err ==
          "tidepool: --validate: '" + count + "' is not a number of plans; expected 1 or more, or all\n");
  }
}

TEST_CASE("a sweep of lifetimes prints no overhead: they take no time without policy and limit") {
  const ScratchFolder folder;
  const std::string trace = folder.file("lifetimes.csv");
  std::ofstream{trace} << "id,lower,upper,size\na,0,9,4096\nb,1,5,4096\n";
  const ProgramResult result = run_program({"sweep", trace, "--policy", "none,lru-swap", "--capacity", "0.7x,1x"});
  CHECK(result.code == 0);
  CHECK(result.out ==
        "\nlifetimes.csv on a100-pcie4: peak 8 KiB, 0 ns without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool      0.7x    1x\n"
        "none      best-fit   OOM    ok\n"
        "lru-swap  best-fit    ok    ok\n"
        "OOM: out of memory\n");
}

TEST_CASE("results of two traces with the same file name have their paths") {
  const ScratchFolder folder;
  std::vector<std::string> traces;
  for (const char* size : {"4096", "8192"}) {
    const std::string in = folder.file(size);
    std::filesystem::create_directory(in);
    traces.push_back(in + "/step.csv");
    std::ofstream{traces.back()} << "id,lower,upper,size\na,0,9,8192\nb,10,12," << size << "\n";
  }
  const std::string database = folder.file("r.sqlite");
  const auto titles = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"sweep", traces[0], traces[1], "--pool", "ideal", "-o", database});
    std::istringstream out{run_program(options).out};
    std::vector<std::string> found;
    for (std::string line; std::getline(out, line);)
      if (line.find(" on a100-pcie4") != std::string::npos) found.push_back(line);
    return found;
  };
  const std::vector<std::string> tables = titles({"--capacity", "1x", "--no-plot"});
  REQUIRE(tables.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(tables[i] == traces[i] + " on a100-pcie4: peak 8 KiB, 0 ns without limit");
  const std::vector<std::string> answers = titles({"--find", "outcome=ok"});
  REQUIRE(answers.size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(answers[i] == traces[i] + " on a100-pcie4: least memory for outcome=ok, peak 8 KiB");
}

TEST_CASE("a sweep does a run again if the file that an option of its pool names has changed") {
  const ScratchFolder folder;
  const std::string trace = folder.file("step.csv"), other = folder.file("other.csv");
  const std::string layout = folder.file("step.layout"), database = folder.file("r.sqlite");
  std::ofstream{trace} << "id,lower,upper,size\na,0,9,4096\nb,1,5,4096\n";
  std::ofstream{other} << "id,lower,upper,size\na,0,9,65536\nb,1,5,4096\n";
  const auto plan = [&](const std::string& step) {
    REQUIRE(run_program({"pack", step, "--pool", "tide-pool", "--layout-out", layout}).code == 0);
  };
  const auto summary = [&] {
    return run_program({"sweep", trace, "--pool", "layout(file=" + layout + ")", "--no-plot", "-o", database}).err;
  };
  plan(trace);
  CHECK(summary().starts_with("1 run in "));
  CHECK(summary().find("; 1 were there already; ") != std::string::npos);
  plan(other);
  const std::string changed = summary();
  CHECK(changed.starts_with("1 run in "));
  CHECK(changed.find("were there already") == std::string::npos);
  plan(trace);
  CHECK(summary().find("; 1 were there already; ") != std::string::npos);
}

}  // namespace tidepool::sweep_test
