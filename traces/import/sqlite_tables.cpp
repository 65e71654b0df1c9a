#include "traces/import/sqlite_tables.hpp"

#include <fmt/ranges.h>
#include <simdjson.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {
namespace {

/// The number of instructions of SQLite's virtual machine between two calls of count_down().
constexpr int kStepsAtOnce = 1000;

/// The most calls of count_down(). A row takes some thirty instructions and at least ten bytes, so a sound file needs
/// less. A damaged file whose pages share their children may need more.
std::int64_t step_limit(const Input& input) {
  return 2000 + static_cast<std::int64_t>(input.bytes().size()) / kStepsAtOnce * 50;
}

/// The most bytes of texts and blobs that are read, in UTF-8. A file has each text once, and a text takes in UTF-16 at
/// least two thirds of the bytes that it takes in UTF-8. So a sound file gives less. A damaged file whose rows share
/// pages may give more.
std::int64_t byte_limit(const Input& input) { return 4 * static_cast<std::int64_t>(input.bytes().size()); }

int count_down(void* steps_left) { return --*static_cast<std::int64_t*>(steps_left) < 0; }

std::string quoted(std::string_view name) {
  std::string text{'"'};
  for (const char c : name) text += c == '"' ? std::string{"\"\""} : std::string{c};
  return text + '"';
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (bytes == nullptr) return "";
  std::string text{bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
  if (!simdjson::validate_utf8(text))
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return text;
}

/// Refuses a database that was not closed: its write-ahead log, a second file, is not empty.
void refuse_if_ahead(const std::string& path) {
  const std::string ahead = path + "-wal";
  std::error_code none;
  if (const std::uintmax_t size = std::filesystem::file_size(ahead, none); !none && size > 0)
    throw InputError{fmt::format(
        "{}: part of it may still be in {}; expected a database that was closed, as after sqlite3 {} 'PRAGMA "
        "wal_checkpoint(TRUNCATE)'",
        path, ahead, path)};
}

}  // namespace

bool SqliteRow::null(std::size_t column) const {
  return sqlite3_column_type(statement_, static_cast<int>(column)) == SQLITE_NULL;
}

std::int64_t SqliteRow::whole(std::size_t column, std::int64_t least, std::int64_t most) const {
  // The type is read before the value, because reading the value of a text converts it.
  const bool is_whole = sqlite3_column_type(statement_, static_cast<int>(column)) == SQLITE_INTEGER;
  const std::int64_t value = is_whole ? sqlite3_column_int64(statement_, static_cast<int>(column)) : 0;
  if (!is_whole || value < least || value > most)
    refuse("\"{}\" is {}; expected a whole number, {} to {}", columns_[column].name,
           null(column) ? "null" : "'" + excerpt(text(column)) + "'", least, most);
  return value;
}

std::optional<std::int64_t> SqliteRow::whole_or_null(std::size_t column, std::int64_t least, std::int64_t most) const {
  if (null(column)) return {};
  return whole(column, least, most);
}

std::string SqliteRow::text(std::size_t column) const { return text_of(statement_, static_cast<int>(column)); }

std::string SqliteRow::position() const { return fmt::format("{}: {}: row {}", *file_, table_, number_); }

void SqliteTables::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }
void SqliteTables::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteTables::SqliteTables(const Input& input)
    : input_{input}, steps_left_{std::make_unique<std::int64_t>(step_limit(input))}, bytes_left_{byte_limit(input)} {
  using namespace std::string_view_literals;
  std::string_view bytes = input.bytes();
  if (!bytes.starts_with("SQLite format 3\0"sv)) throw InputError{input.path() + ": not an SQLite database"};
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READONLY, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(input.path(), code);
  sqlite3_progress_handler(handle, kStepsAtOnce, count_down, steps_left_.get());
  for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER})
    sqlite3_db_config(handle, off, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 1 << 22);
  sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, 500);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  // SQLite opens no file in memory whose header (two bytes) says that it has a write-ahead log. A database that was
  // closed is complete without its log, so a copy of it gets another header.
  constexpr std::size_t kWriteVersion = 18, kReadVersion = 19;
  if (bytes.size() > kReadVersion && bytes[kReadVersion] == 2) {
    refuse_if_ahead(input.path());
    rollback_mode_ = bytes;
    rollback_mode_[kWriteVersion] = rollback_mode_[kReadVersion] = 1;
    bytes = rollback_mode_;
  }
  // SQLite does not write to a buffer that is marked read-only, although it takes a pointer to changeable data.
  auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  const int taken = sqlite3_deserialize(handle, "main", data, size, size, SQLITE_DESERIALIZE_READONLY);
  if (taken != SQLITE_OK) fail(input.path(), taken);

  const Statement list =
      prepare(input.path(),
              "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE%'");
  int step = SQLITE_OK;
  while ((step = sqlite3_step(list.get())) == SQLITE_ROW) {
    count_bytes(input.path(), list.get());
    tables_.insert(text_of(list.get(), 0));
  }
  if (step != SQLITE_DONE) fail(input.path(), step);
}

void SqliteTables::count_bytes(const std::string& position, sqlite3_stmt* row) const {
  for (int i = 0; i < sqlite3_column_count(row); ++i) {
    const int type = sqlite3_column_type(row, i);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) bytes_left_ -= sqlite3_column_bytes(row, i);
  }
  if (bytes_left_ < 0) fail(position, SQLITE_INTERRUPT);
}

void SqliteTables::fail(const std::string& position, int code) const {
  if (code == SQLITE_INTERRUPT)
    throw InputError{fmt::format("{}: takes more work to read than a sound file of {} can", position,
                                 to_text(Bytes{static_cast<std::int64_t>(input_.bytes().size())}))};
  throw InputError{fmt::format("{}: {}", position,
                               code == SQLITE_ERROR ? excerpt(sqlite3_errmsg(handle_.get())) : sqlite3_errstr(code))};
}

SqliteTables::Statement SqliteTables::prepare(const std::string& position, const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  Statement prepared{statement};
  if (code != SQLITE_OK) fail(position, code);
  return prepared;
}

void SqliteTables::each(const char* table, std::span<const SqliteColumn> columns,
                        const std::function<void(const SqliteRow&)>& visit) const {
  if (!has(table)) return;
  const std::string position = fmt::format("{}: {}", input_.path(), table);
  std::set<std::string> present;
  {
    const Statement all = prepare(position, fmt::format("SELECT * FROM {}", quoted(table)));
    for (int i = 0; i < sqlite3_column_count(all.get()); ++i) present.insert(sqlite3_column_name(all.get(), i));
  }
  std::vector<std::string> selected, required;
  for (const SqliteColumn& column : columns) {
    selected.push_back(present.contains(column.name) ? quoted(column.name) : "NULL");
    if (column.required) required.push_back(column.name);
  }
  for (const std::string& name : required)
    if (!present.contains(name))
      throw InputError{fmt::format("{}: no column '{}'; expected {}", position, name, fmt::join(required, ", "))};

  const Statement rows = prepare(position, fmt::format("SELECT {} FROM {}", fmt::join(selected, ", "), quoted(table)));
  SqliteRow row;
  row.file_ = &input_.path();
  row.table_ = table;
  row.columns_ = columns;
  row.statement_ = rows.get();
  int step = SQLITE_OK;
  while ((step = sqlite3_step(rows.get())) == SQLITE_ROW) {
    ++row.number_;
    count_bytes(position, rows.get());
    visit(row);
  }
  if (step != SQLITE_DONE) fail(position, step);
}

}  // namespace tidepool
