#include "simulator/studies/sweep/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "traces/base/text.hpp"

namespace tidepool::schema {
namespace {

const char* sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::kText:
      return "TEXT";
    case ColumnType::kReal:
      return "REAL";
    case ColumnType::kInteger:
    case ColumnType::kFlag:
      break;
  }
  return "INTEGER";
}

std::string create_runs() {
  std::string table = "CREATE TABLE runs (run_key TEXT NOT NULL PRIMARY KEY";
  std::string roles = "INSERT INTO run_columns VALUES ('run_key', 'TEXT', 'identity')";
  for (const Column& column : result_columns()) {
    const std::string name = column_name(column);
    table += fmt::format(", {} {}", name, sql_type(column.type));
    roles += fmt::format(", ('{}', '{}', '{}')", name, sql_type(column.type), to_text(column.role));
  }
  return table +
         ") WITHOUT ROWID;\n"
         "CREATE TABLE run_columns (name TEXT NOT NULL PRIMARY KEY, type TEXT, role TEXT) WITHOUT ROWID;\n" +
         roles + ";\n";
}

constexpr const char* kTables = R"sql(
CREATE TABLE sweeps (sweep_key TEXT NOT NULL PRIMARY KEY, version TEXT NOT NULL, request TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measurements (
  run_key TEXT NOT NULL, backend TEXT NOT NULL, device TEXT NOT NULL, repeat INTEGER NOT NULL, outcome TEXT NOT NULL,
  message TEXT, predicted_ns INTEGER, measured_ns INTEGER, measured_peak_bytes INTEGER, corrupt_bytes INTEGER,
  PRIMARY KEY (run_key, backend, device, repeat)) WITHOUT ROWID;
)sql";

// The columns in which comparable runs are equal: the step, the machine, the rules and the program.
constexpr const char* kComparable =
    "trace_hash, machine_hash, assume, iterations, steady, count_search, addresses, version";
// Sorts runs without a limit after runs with any limit.
constexpr const char* kRoom = "ifnull(capacity_bytes, 4611686018427387904)";
constexpr const char* kShare = "round(capacity_bytes * 1.0 / ideal_peak_bytes, 4) AS capacity_share";
constexpr const char* kRunAndCost = "policy, options, pool, seed, makespan_ns, overhead_ratio, gap, version, run_key";

std::string create_views() {
  using namespace fmt::literals;
  return fmt::format(
      R"sql(
CREATE VIEW frontier AS SELECT trace, machine, addresses, capacity_bytes, {share}, {run_and_cost} FROM (
  SELECT *, min(makespan_ns) OVER (PARTITION BY {comparable} ORDER BY {room} RANGE UNBOUNDED PRECEDING) AS best,
    min(makespan_ns) OVER (PARTITION BY {comparable} ORDER BY {room}
      RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS best_in_less
  FROM runs WHERE outcome = 'ok')
WHERE makespan_ns = best AND (best_in_less IS NULL OR makespan_ns < best_in_less);

CREATE VIEW best_policy AS SELECT trace, machine, addresses, capacity_bytes, {share}, {run_and_cost} FROM (
  SELECT *, row_number() OVER (PARTITION BY {comparable}, capacity_bytes
      ORDER BY makespan_ns, policy, options, pool, seed) AS place
  FROM runs WHERE outcome = 'ok')
WHERE place = 1;

CREATE VIEW gap_to_bound AS SELECT trace, machine, capacity_bytes, {share}, policy, options, pool, seed, outcome,
  CASE WHEN outcome = 'ok' THEN makespan_ns END AS makespan_ns, bound_ns, bound_kind, limited_by, gap,
  bound_ns IS NULL AS impossible, version, run_key
FROM runs WHERE bound_kind IS NOT NULL;

CREATE VIEW predicted_vs_measured AS SELECT trace, machine, backend, device, capacity_bytes, policy, options, pool,
  seed, repeat, measurements.outcome AS outcome, measurements.message AS message,
  ifnull(predicted_ns, makespan_ns) AS predicted_ns, measured_ns,
  measured_ns * 1.0 / ifnull(predicted_ns, makespan_ns) - 1 AS error, peak_bytes AS predicted_peak_bytes, measured_peak_bytes,
  corrupt_bytes, version, run_key
FROM measurements JOIN runs USING (run_key);

CREATE VIEW failures AS SELECT policy, options, pool, message, count(*) AS runs, min(run_key) AS run_key
FROM runs WHERE outcome = 'error' GROUP BY policy, options, pool, message;
)sql",
      "share"_a = kShare, "run_and_cost"_a = kRunAndCost, "comparable"_a = kComparable, "room"_a = kRoom);
}

}  // namespace

std::string column_name(const Column& column) {
  std::string name{column.name};
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string column_names() {
  std::string names;
  for (const Column& column : result_columns()) names += (names.empty() ? "" : ", ") + column_name(column);
  return names;
}

std::string create() { return create_runs() + kTables + create_views(); }

}  // namespace tidepool::schema

namespace tidepool {
namespace {

/// Bytes as SQL writes them: x'00ff'.
std::string hexadecimal(const std::string& bytes) {
  std::string text = "x'";
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text + "'";
}

}  // namespace

void bind(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

void bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value))
    sqlite3_bind_int(statement, index, *flag ? 1 : 0);
  else if (const auto* integer = std::get_if<std::int64_t>(&value))
    sqlite3_bind_int64(statement, index, *integer);
  else if (const auto* real = std::get_if<double>(&value))
    sqlite3_bind_double(statement, index, *real);
  else if (const auto* text = std::get_if<std::string>(&value))
    bind(statement, index, *text);
  else
    sqlite3_bind_null(statement, index);
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? "" : std::string{text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
}

bool is_null(sqlite3_stmt* statement, int column) { return sqlite3_column_type(statement, column) == SQLITE_NULL; }

Value value_of(sqlite3_stmt* statement, int column, ColumnType type) {
  if (is_null(statement, column)) return {};
  switch (type) {
    case ColumnType::kText:
      return text_of(statement, column);
    case ColumnType::kInteger:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case ColumnType::kReal:
      return sqlite3_column_double(statement, column);
    case ColumnType::kFlag:
      return sqlite3_column_int(statement, column) != 0;
  }
  return {};
}

Value value_of(sqlite3_stmt* statement, int column) {
  const int type = sqlite3_column_type(statement, column);
  switch (type) {
    case SQLITE_INTEGER:
      return value_of(statement, column, ColumnType::kInteger);
    case SQLITE_FLOAT:
      return value_of(statement, column, ColumnType::kReal);
    case SQLITE_NULL:
      return {};
    default:
      break;
  }
  const std::string text = text_of(statement, column);
  return type == SQLITE_BLOB || !is_utf8(text) ? hexadecimal(text) : text;
}

}  // namespace tidepool
