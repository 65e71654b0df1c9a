#include "simulator/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <stdexcept>

#include "traces/error.hpp"

namespace tidepool {
namespace {

constexpr int kApplication = 0x54696465;  // "Tide"
constexpr int kSchema = 2;
constexpr int kBusyMilliseconds = 30'000;

std::string column_name(const Column& column) {
  std::string name{column.name};
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

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

std::string create_table() {
  std::string sql = "CREATE TABLE runs (run_key TEXT NOT NULL PRIMARY KEY";
  for (const Column& column : result_columns())
    sql += fmt::format(", {} {}", column_name(column), sql_type(column.type));
  return sql + ") WITHOUT ROWID";
}

std::string select_row() {
  std::string sql = "SELECT ";
  for (const Column& column : result_columns())
    sql += (column.name == result_columns().front().name ? "" : ", ") + column_name(column);
  return sql + " FROM runs WHERE run_key = ?";
}

std::string insert_row() {
  std::string sql = "INSERT OR REPLACE INTO runs VALUES (?";
  for (std::size_t i = 0; i < result_columns().size(); ++i) sql += ", ?";
  return sql + ")";
}

/// `text` must live until the statement has run.
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

Value value_of(sqlite3_stmt* statement, int column, ColumnType type) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return {};
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

}  // namespace

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }
void Database::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(const std::string& path) : path_{path} {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) throw InputError{fmt::format("{}: {}", path, sqlite3_errstr(code))};
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  check_or_create();
  insert_ = prepare(insert_row());
  find_ = prepare(select_row());
  outcome_ = prepare("SELECT outcome FROM runs WHERE run_key = ?");
}

void Database::check_or_create() {
  const auto foreign = [&] {
    return InputError{
        fmt::format("{}: not a database of sweep results; expected a new file or one that sweep wrote", path_)};
  };
  try {
    const std::int64_t application = number("PRAGMA application_id");
    const std::int64_t version = number("PRAGMA user_version");
    if (application != kApplication && (application != 0 || number("SELECT count(*) FROM sqlite_master") != 0))
      throw foreign();
    if (application == kApplication && version != kSchema)
      throw InputError{
          fmt::format("{}: schema version {}; this tidepool reads and writes version {}", path_, version, kSchema)};
  } catch (const std::runtime_error&) {
    if (sqlite3_errcode(handle_.get()) == SQLITE_NOTADB) throw foreign();
    throw;
  }
  execute("PRAGMA journal_mode = WAL");
  execute("PRAGMA synchronous = NORMAL");
  execute("BEGIN IMMEDIATE");  // another process may be making it too
  if (number("PRAGMA application_id") == 0) {
    execute(create_table().c_str());
    execute(fmt::format("PRAGMA application_id = {}", kApplication).c_str());
    execute(fmt::format("PRAGMA user_version = {}", kSchema).c_str());
  }
  execute("COMMIT");
}

void Database::fail(int code) const {
  throw std::runtime_error{
      fmt::format("{}: {}", path_, code == SQLITE_ERROR ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code))};
}

void Database::execute(const char* sql) const {
  if (const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr); code != SQLITE_OK) fail(code);
}

Database::Statement Database::prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr);
  if (code != SQLITE_OK) fail(code);
  return Statement{statement};
}

std::int64_t Database::number(const char* sql) const {
  const Statement statement = prepare(sql);
  if (const int code = sqlite3_step(statement.get()); code != SQLITE_ROW) fail(code);
  return sqlite3_column_int64(statement.get(), 0);
}

void Database::insert(std::span<const KeyedRow> rows) {
  if (rows.empty()) return;
  execute("BEGIN IMMEDIATE");
  for (const KeyedRow& keyed : rows) {
    bind(insert_.get(), 1, keyed.key);
    for (std::size_t i = 0; i < keyed.row.size(); ++i) bind(insert_.get(), static_cast<int>(i) + 2, keyed.row[i]);
    const int code = sqlite3_step(insert_.get());
    sqlite3_reset(insert_.get());
    if (code == SQLITE_DONE) continue;
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    fail(code);
  }
  execute("COMMIT");
}

std::optional<Row> Database::find(const std::string& key) const {
  std::optional<Row> row;
  bind(find_.get(), 1, key);
  const int code = sqlite3_step(find_.get());
  if (code == SQLITE_ROW) {
    row.emplace();
    for (std::size_t i = 0; i < result_columns().size(); ++i)
      row->push_back(value_of(find_.get(), static_cast<int>(i), result_columns()[i].type));
  }
  sqlite3_reset(find_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(code);
  return row;
}

std::optional<std::string> Database::outcome(const std::string& key) const {
  std::optional<std::string> found;
  bind(outcome_.get(), 1, key);
  const int code = sqlite3_step(outcome_.get());
  if (code == SQLITE_ROW) found = text_of(outcome_.get(), 0);
  sqlite3_reset(outcome_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(code);
  return found;
}

}  // namespace tidepool
