#include "simulator/studies/sweep/database.hpp"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "simulator/studies/sweep/schema.hpp"
#include "simulator/studies/sweep/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "tests/refusal.hpp"
#include "traces/base/error.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"

namespace tidepool::database_test {

using tidepool::tests::refusal;

namespace {

/// A row with only the columns that the views use.
KeyedRow made_row(const std::string& key, const std::string& policy, std::optional<Bytes> capacity, Nanos makespan,
                  const std::string& outcome = "ok") {
  Row row(result_columns().size());
  const auto set = [&](std::string_view name, Value value) {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (result_columns()[i].name == name) row[i] = std::move(value);
  };
  set("trace", std::string{"t"});
  set("trace_hash", std::string{"hash"});
  set("pool", std::string{"best-fit"});
  set("policy", policy);
  set("options", std::string{});
  set("machine", std::string{"m"});
  set("machine_hash", std::string{"m"});
  if (capacity) set("capacity_bytes", capacity->count());
  set("seed", std::int64_t{1});
  set("assume", std::string{});
  set("iterations", std::int64_t{1});
  set("steady", false);
  set("count_search", false);
  set("version", std::string{"1"});
  set("outcome", outcome);
  set("addresses", true);
  set("ideal_peak_bytes", std::int64_t{1000});
  set("makespan_ns", makespan.count());
  return {key, row};
}

/// The rows of a query's answer, one per line, with commas between the values.
std::string answer(const Database& database, const std::string& sql) {
  std::string text;
  database.query(
      sql, [](auto) {},
      [&](std::span<const Value> values) {
        for (const Value& value : values) text += (&value == values.data() ? "" : ",") + value_text(value);
        text += '\n';
      });
  return text;
}

}  // namespace

TEST_CASE("the frontier has the runs that no other run beats with as much memory or less") {
  Database database{":memory:"};
  database.insert(std::vector<KeyedRow>{
      made_row("a", "slow", 400_B, 50_ns),  // no other run ended well with so little memory
      made_row("b", "failed", 300_B, 10_ns, "out_of_memory"), made_row("c", "slow", 500_B, 40_ns),  // beaten by d
      made_row("d", "fast", 500_B, 30_ns), made_row("e", "twin", 500_B, 30_ns),                     // as good as d
      made_row("f", "fast", 600_B, 30_ns),  // no better than d, which has less memory
      made_row("g", "fast", std::nullopt, 20_ns)});
  CHECK(answer(database, "SELECT run_key, capacity_share FROM frontier ORDER BY run_key") ==
        "a,0.4\nd,0.5\ne,0.5\ng,none\n");
  CHECK(answer(database, "SELECT run_key FROM best_policy ORDER BY run_key") == "a\nd\nf\ng\n");
}

TEST_CASE("measurements are never replaced") {
  Database database{":memory:"};
  database.insert(std::vector<KeyedRow>{made_row("a", "slow", 400_B, 50_ns)});
  const auto insert = [&](Nanos time) {
    database.insert(std::vector<MeasuredRun>{{.run_key = "a", .backend = "host", .measured = time}});
  };
  for (const Nanos time : {210_ns, 220_ns, 210_ns, 220_ns}) insert(time);  // an equal measurement adds nothing
  CHECK(answer(database, "SELECT repeat, measured_ns FROM measurements ORDER BY repeat") == "1,210\n2,220\n");
}

TEST_CASE("a measurement is compared with the prediction") {
  Database database{":memory:"};
  database.insert(std::vector<KeyedRow>{made_row("a", "fast", 500_B, 200_ns)});
  const std::vector<MeasuredRun> measured{{.run_key = "a", .backend = "cuda", .device = "d", .measured = 210_ns},
                                          {.run_key = "a", .backend = "host", .outcome = "error", .message = "why"}};
  database.insert(measured);
  database.insert(measured);
  CHECK(answer(database, "SELECT backend, predicted_ns, measured_ns, round(error, 6) FROM predicted_vs_measured") ==
        "cuda,200,210,0.05\nhost,200,none,none\n");
  const std::vector<MeasuredRun> back = database.measurements();
  REQUIRE(back.size() == 2);
  CHECK(back[0].measured == 210_ns);
  CHECK_FALSE(back[0].corrupt);
  CHECK(back[1].message == "why");
}

TEST_CASE("two results of one run are an error that names both") {
  const ScratchFolder scratch;
  Database database{scratch.file("a.sqlite")};
  database.insert(std::vector<KeyedRow>{made_row("k", "p", 500_B, 30_ns)});
  database.insert(std::vector<KeyedRow>{made_row("k", "p", 500_B, 30_ns)}, "b.sqlite");
  CHECK(refusal([&] {
          database.insert(std::vector<KeyedRow>{made_row("new", "p", 1_B, 1_ns), made_row("k", "p", 500_B, 31_ns)},
                          "b.sqlite");
        }) == "b.sqlite: run k (p on best-fit, t, 500 bytes): makespan_ns is 31, but 30 in " +
                  scratch.file("a.sqlite") +
                  "; expected the same from every worker (is a policy not deterministic, or are these two programs of "
                  "one version?)");
  CHECK(database.runs() == 1);  // either all rows are added or none

  KeyedRow labelled = made_row("k", "p", 500_B, 30_ns);
  labelled.row[0] = std::string{"/elsewhere/t"};
  database.insert(std::vector<KeyedRow>{labelled});
  CHECK(text_at(*database.find("k"), "trace") == "t");
}

TEST_CASE("a result replaces a failure, but a failure does not replace a result") {
  Database database{":memory:"};
  const KeyedRow failed = made_row("k", "p", 500_B, 0_ns, "error"), good = made_row("k", "p", 500_B, 30_ns);
  for (const KeyedRow& row : {failed, failed, good, failed}) database.insert(std::vector<KeyedRow>{row});
  CHECK(database.outcome("k") == "ok");
}

TEST_CASE("the database says which of its columns are deterministic") {
  const Database database{":memory:"};
  CHECK(answer(database, "SELECT name FROM run_columns WHERE role = 'wall_clock' ORDER BY name") ==
        "actions_per_second\nplan_ns\nsearch_ns\n");
  CHECK(answer(database, "SELECT name FROM run_columns WHERE role = 'label'") == "trace\n");
  CHECK(answer(database,
               "SELECT name FROM pragma_table_info('runs') EXCEPT SELECT name FROM run_columns "
               "UNION ALL SELECT name FROM run_columns EXCEPT SELECT name FROM pragma_table_info('runs')") == "");
}

TEST_CASE("every query of DATABASE.md runs") {
  std::vector<SweepPart> parts;
  NamedTrace trace{"t", tests::random_trace(3, 60)};
  Grid grid{{.policy = "none,lru-swap,dtr", .capacity = "0.5x,1x"}, trace.trace};
  parts.push_back({std::move(trace), std::move(grid)});
  Database database{":memory:"};
  sweep(parts, database, {});
  std::istringstream text{content_of(paths::source_folder() + "/simulator/studies/sweep/DATABASE.md")};
  int queries = 0;
  bool sql = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      sql = line == "```sql";
    } else if (sql) {
      INFO(line);
      ++queries;
      const std::string rows = answer(database, line);
      CHECK(
          (rows.empty() == (line.find("measured") != std::string::npos || line.find("failures") != std::string::npos)));
    }
  }
  CHECK(queries == 9);
}

TEST_CASE("a database is one file when it is closed, and can be read where nothing can be written") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  const auto journal = [&] { return content_of(path).at(18); };  // 1: a rollback journal, 2: a write-ahead log
  {
    const Database database{path};
    CHECK(journal() == 2);
    CHECK(database.runs() == 0);
  }
  CHECK(journal() == 1);
  std::ofstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekp(18).write("\2\2", 2);  // as a killed sweep leaves it
  file.close();
  const auto reads = [&] {
    const pid_t reader = fork();
    if (reader == 0) {
      if (getuid() == 0 && setuid(65534) != 0) _exit(3);
      try {
        _exit(Database{path, Database::Open::kExisting}.runs() == 0 ? 0 : 1);
      } catch (const std::exception&) {
        _exit(2);
      }
    }
    int status = -1;
    waitpid(reader, &status, 0);
    return status;
  };
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_all | perms::group_read | perms::others_read);
  std::filesystem::permissions(scratch.file(""), perms::owner_read | perms::owner_exec | perms::group_read |
                                                     perms::group_exec | perms::others_read | perms::others_exec);
  CHECK(reads() == 0);
  std::filesystem::permissions(scratch.file(""), perms::owner_all);
}

TEST_CASE(
    "a database that a killed sweep left is known as one, and can be read with its log where nothing can be written") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite"), fixed = scratch.file("fixed");
  const pid_t killed = fork();
  if (killed == 0) {
    Database database{path};
    database.insert(std::vector{made_row("key", "p", 500_B, 30_ns)});
    _exit(0);  // without an end of the database
  }
  int status = -1;
  waitpid(killed, &status, 0);
  REQUIRE(status == 0);
  REQUIRE(std::filesystem::file_size(path + "-wal") > 0);
  CHECK(Database::is_ours(path));
  using std::filesystem::perms;
  constexpr perms kRead = perms::owner_read | perms::group_read | perms::others_read,
                  kEnter = perms::owner_exec | perms::group_exec | perms::others_exec;
  std::filesystem::create_directory(fixed);
  for (const std::string name : {"/r.sqlite", "/r.sqlite-wal"}) {  // a copy without the index of the log
    std::filesystem::copy_file(scratch.file("") + name, fixed + name);
    std::filesystem::permissions(fixed + name, kRead);
  }
  std::filesystem::permissions(scratch.file(""), perms::owner_all | kRead | kEnter);
  std::filesystem::permissions(fixed, kRead | kEnter);
  const pid_t reader = fork();
  if (reader == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(3);
    try {
      _exit(Database{fixed + "/r.sqlite", Database::Open::kExisting}.runs() == 1 ? 0 : 1);
    } catch (const std::exception&) {
      _exit(2);
    }
  }
  waitpid(reader, &status, 0);
  CHECK(status == 0);
  std::filesystem::permissions(fixed, perms::owner_all);
  CHECK(files_in(fixed).size() == 2);
}

TEST_CASE("a query only reads") {
  const Database database{":memory:"};
  const auto refused = [&](const std::string& sql) { return refusal([&] { answer(database, sql); }); };
  CHECK(refused("SELECT x FROM runs") == "SELECT x FROM runs: no such column: x");
  CHECK(refused("DELETE FROM runs") == "'DELETE FROM runs' is no query; expected one SELECT");
  CHECK(refused("SELECT 1; DROP TABLE runs") == "' DROP TABLE runs' follows the first query; expected one SELECT");
  CHECK(refused("  ") == "'  ' is no query; expected one SELECT");
}

TEST_CASE("a run that lacks a required column, or has an unknown outcome, is refused with the name of the column") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  Database database{path};
  database.insert(std::vector{made_row("key7", "p", 500_B, 30_ns)});
  const auto after = [&](const std::string& change) {
    sqlite3* opened = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &opened) == SQLITE_OK);
    CHECK(sqlite3_exec(opened, ("UPDATE runs SET " + change).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(opened);
    const std::string why = refusal([&] { database.each([](const KeyedRow&) {}); });
    CHECK(refusal([&] { database.find("key7"); }) == why);
    return why;
  };
  const std::string expected = "; expected a whole database of sweep results";
  CHECK(after("seed = 2").empty());
  CHECK(after("outcome = 'fine'") == path + ": damaged: run key7 has outcome 'fine'" + expected);
  CHECK(after("outcome = NULL") == path + ": damaged: run key7 has no outcome" + expected);
  CHECK(after("outcome = 'ok', addresses = NULL") == path + ": damaged: run key7 has no addresses" + expected);
}

TEST_CASE("a damaged database is refused and left alone") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  {
    Database database{path};
    std::vector<KeyedRow> rows;
    for (int i = 0; i < 200; ++i) rows.push_back(made_row("key" + std::to_string(i), "p", 500_B, 30_ns));
    database.insert(rows);
  }
  const std::string whole = content_of(path);
  const auto opened = [&](const std::string& content) {
    std::ofstream{path, std::ios::binary} << content;
    const std::string why = refusal([&] {
      const Database database{path, Database::Open::kExisting};
      database.check();
      static_cast<void>(database.runs());
    });
    CHECK(content_of(path) == content);
    return why;
  };
  CHECK(opened(whole).empty());
  CHECK(opened(whole.substr(0, whole.size() / 2)) ==
        path + ": damaged: database disk image is malformed; expected a whole database of sweep results");
  CHECK(refusal([] { Database{":memory:"}.get("key7"); }) ==
        ":memory:: damaged: run key7 is not where its key says; expected a whole database of sweep results");
  CHECK(opened("") == path + ": is empty; expected a database that sweep wrote");
  CHECK(opened(whole.substr(0, 60)) == path + ": not a database of sweep results; expected one that sweep wrote");
  // The last bytes of the file may belong to a text; if they are cut off, SQLite reads zeros there without an error.
  for (std::size_t length = 100; length + 1'000 < whole.size(); length += 1'000) {
    INFO(length << " of " << whole.size() << " bytes");
    CHECK_FALSE(opened(whole.substr(0, length)).empty());
  }
  std::string scribbled = whole;
  for (std::size_t i = 5'000; i < 9'000; ++i) scribbled[i] = static_cast<char>(i);
  CHECK(opened(scribbled).find(path + ": ") == 0);
  std::filesystem::remove(path);
  CHECK(refusal([&] { const Database database(path, Database::Open::kExisting); }) ==
        path + ": no such file; expected a database that sweep wrote");
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace tidepool::database_test
