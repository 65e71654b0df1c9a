#include "simulator/studies/sweep/sweep.hpp"

#include <sqlite3.h>

#include <functional>
#include <set>

#include "simulator/studies/sweep/result_row.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/base/error.hpp"

namespace tidepool::sweep_test {

using tidepool::tests::random_trace;

namespace {

std::vector<SweepPart> parts(const GridText& text) {
  std::vector<SweepPart> all;
  for (const std::uint64_t seed : {std::uint64_t{3}, std::uint64_t{4}}) {
    NamedTrace trace{"random-" + std::to_string(seed), random_trace(seed, 200)};
    Grid grid{text, trace.trace};
    all.push_back({std::move(trace), std::move(grid)});
  }
  return all;
}

/// Every row that the database has for the parts' runs, in their order, without the columns of wall time.
std::vector<Row> rows_of(std::span<const SweepPart> all, const Database& database) {
  std::vector<Row> rows;
  for (const SweepPart& part : all)
    for (std::size_t i = 0; i < part.grid.size(); ++i)
      if (auto row = database.find(run_key(part.trace.trace, part.grid.at(i)))) {
        for (std::size_t c = 0; c < row->size(); ++c)
          if (result_columns()[c].role == ColumnRole::kWallClock) (*row)[c] = {};
        rows.push_back(std::move(*row));
      }
  return rows;
}

const GridText kText{
    .pool = "best-fit,ideal", .policy = "none,lru,lru-swap,random", .capacity = "0.3x..1.0x/4", .seed = "1..2"};
constexpr std::size_t kRuns = 2 * 2 * 4 * 4 * 2;

std::string refusal(const std::string& path) {
  try {
    const Database database{path};
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void run_sql(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  CHECK(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
}

}  // namespace

TEST_CASE("a sweep gives the same rows on any number of threads") {
  const std::vector<SweepPart> all = parts(kText);
  std::vector<std::vector<Row>> results;
  for (const int threads : {1, 2, 4}) {
    Database database{":memory:"};
    const SweepProgress end = sweep(all, database, {.threads = threads});
    CHECK(end.runs == kRuns);
    CHECK(end.done == kRuns);
    CHECK(end.present == 0);
    CHECK(end.failed == 0);
    CHECK(end.actions > 0);
    results.push_back(rows_of(all, database));
    CHECK(results.back().size() == kRuns);
    CHECK(results.back() == results.front());
  }
}

TEST_CASE("a sweep does only the runs that the database does not have") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  GridText half = kText;
  half.policy = "none,random";
  const std::vector<SweepPart> all = parts(kText), first = parts(half);
  {
    Database database{path};
    CHECK(sweep(first, database, {}).done == kRuns / 2);
  }
  Database database{path};
  const SweepProgress end = sweep(all, database, {});
  CHECK(end.present == kRuns / 2);
  CHECK(end.done == kRuns / 2);
  CHECK(sweep(all, database, {}).done == 0);

  Database at_once{":memory:"};
  sweep(all, at_once, {});
  CHECK(rows_of(all, database) == rows_of(all, at_once));
}

TEST_CASE("a sweep that is told to stop keeps its finished runs, and can be continued later") {
  const std::vector<SweepPart> all = parts(kText);
  Database database{":memory:"};
  const std::atomic<bool> stop = true;
  CHECK(sweep(all, database, {.threads = 2, .stop = &stop}).done == 0);
  CHECK(sweep(all, database, {.threads = 2}).done == kRuns);
}

TEST_CASE("a policy that fails gives a row with its message, and no other run is lost") {
  const std::vector<SweepPart> all = parts({.policy = "scripted,lru", .capacity = "none,0.5x"});
  Database database{":memory:"};
  tests::script() = {{.verb = Verb::kDrop, .before = OpId{0}, .subject = 4'000'000'000}};
  const SweepProgress end = sweep(all, database, {.threads = 2});
  tests::script().clear();
  CHECK(end.done == 8);
  CHECK(end.failed == 4);
  CHECK(end.first_failure.find("scripted on best-fit: ") != std::string::npos);
  for (const Row& row : rows_of(all, database)) {
    INFO(to_json(row));
    if (text_at(row, "policy") == "lru") {
      CHECK(text_at(row, "outcome") != "error");
    } else {
      CHECK(text_at(row, "outcome") == "error");
      CHECK(text_at(row, "message").find("drop version 4000000000 before op 0") != std::string::npos);
      CHECK(std::holds_alternative<std::monostate>(at(row, "makespan_ns")));
    }
  }
  const SweepProgress mended = sweep(all, database, {});
  CHECK(mended.done == 4);
  CHECK(mended.failed == 0);
}

TEST_CASE("a row that is written to the database is read back unchanged") {
  const NamedTrace trace{"a \"name\"", random_trace(2, 60)};
  const RunSpec spec{.capacity = trace.trace.ideal_peak(), .overhead_limit = 2.5};
  const Row row = make_row(trace, trace.trace.ideal_peak(), spec, try_simulate(trace.trace, spec), std::nullopt);
  Database database{":memory:"};
  database.insert(std::vector<KeyedRow>{{"key", row}});
  CHECK(database.find("key") == row);
  CHECK_FALSE(database.find("other"));
  CHECK(database.outcome("key") == text_at(row, "outcome"));
  CHECK_FALSE(database.outcome("other"));
}

TEST_CASE("a bound above the mean of an unsettled run is left out, however long the search took") {
  const NamedTrace trace{"t", random_trace(2, 60)};
  const RunSpec spec{.steady = true, .count_search = true};
  const auto kind = [&](Nanos bound, Nanos search) {
    Result result;
    result.baseline = 5_ns;
    result.search = search;
    result.totals.makespan = 10_ns;
    result.cycle.settled = false;
    return at(make_row(trace, 1_KiB, spec, result, Bound{.name = "some", .makespan = bound}), "bound_kind");
  };
  for (const Nanos search : {0_ns, 1_ms}) {
    CHECK(kind(10_ns, search) == Value{std::string{"some"}});
    CHECK(kind(11_ns, search) == Value{});
  }
}

TEST_CASE("two runs have different keys if anything differs that may change the result") {
  const Trace trace = random_trace(1, 30), other = random_trace(2, 30);
  const RunSpec spec;
  std::vector<std::string> keys{run_key(trace, spec), run_key(other, spec)};
  const auto add = [&](const std::function<void(RunSpec&)>& change) {
    RunSpec changed = spec;
    change(changed);
    keys.push_back(run_key(trace, changed));
  };
  add([](RunSpec& s) { s.pool = "ideal"; });
  add([](RunSpec& s) { s.policy = "lru"; });
  add([](RunSpec& s) { s.pool = "best-fit(alignment=1B)"; });
  add([](RunSpec& s) { s.capacity = 1_GiB; });
  add([](RunSpec& s) { s.machine.name = "other"; });
  add([](RunSpec& s) { s.machine.h2d.latency = 7_us; });
  add([](RunSpec& s) { s.seed = 2; });
  add([](RunSpec& s) { s.assume = Assumptions::find("simrd"); });
  add([](RunSpec& s) { s.overhead_limit = 2.0; });
  add([](RunSpec& s) { s.iterations = 2; });
  add([](RunSpec& s) { s.steady = true; });
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == keys.size());
  RunSpec same = spec;
  same.pool = " best-fit ( ) ";
  same.machine.source = "elsewhere";
  CHECK(run_key(trace, same) == keys[0]);
}

TEST_CASE("a file with other content is refused and not changed") {
  const ScratchFolder scratch;
  const std::string text = scratch.file("notes.txt"), foreign = scratch.file("foreign.sqlite"),
                    later = scratch.file("later.sqlite");
  std::ofstream{text} << std::string(5000, 'x');
  CHECK(refusal(text) == text + ": not a database of sweep results; expected a new file or one that sweep wrote");
  CHECK(content_of(text) == std::string(5000, 'x'));
  run_sql(foreign, "CREATE TABLE songs (name TEXT)");
  CHECK(refusal(foreign) == foreign + ": not a database of sweep results; expected a new file or one that sweep wrote");
  { const Database made{later}; }
  run_sql(later, "PRAGMA user_version = 7");
  CHECK(refusal(later) == later + ": schema version 7; this tidepool reads and writes version 6");
  run_sql(later, "PRAGMA user_version = 4");  // version 4 has times of first steps, not of steady states
  CHECK(refusal(later) == later + ": schema version 4; this tidepool reads and writes version 6");
  const std::string nowhere = scratch.file("no/such/folder.sqlite");
  CHECK(refusal(nowhere) == nowhere + ": unable to open database file");
}

}  // namespace tidepool::sweep_test
