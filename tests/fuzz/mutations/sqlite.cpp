#include <sqlite3.h>

#include <array>
#include <memory>
#include <vector>

#include "tests/fuzz/mutations/mutations.hpp"

namespace tidepool::fuzz {
namespace {

using Connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

/// The bytes as a database in memory; nothing if they are fewer than a header has. SQLite checks them only when it
/// reads.
Connection open(std::string bytes) {
  sqlite3* handle = nullptr;
  sqlite3_open(":memory:", &handle);
  Connection connection{handle, &sqlite3_close};
  constexpr std::size_t kVersionsAt = 18;  // 2 means a write-ahead log beside the file; there is none
  if (bytes.size() < 100) return {nullptr, &sqlite3_close};
  bytes[kVersionsAt] = bytes[kVersionsAt + 1] = 1;
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(handle, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) != SQLITE_OK)
    return {nullptr, &sqlite3_close};
  return connection;
}

/// The first column of each row.
std::vector<std::string> column(sqlite3* handle, const std::string& sql) {
  std::vector<std::string> all;
  const auto add = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(values[0] != nullptr ? values[0] : "");
    return 0;
  };
  sqlite3_exec(handle, sql.c_str(), add, &all, nullptr);
  return all;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string{"\"\""} : std::string{c};
  return text + '"';
}

std::string change(sqlite3* handle, Random& random) {
  const std::vector<std::string> tables = column(handle, "SELECT name FROM sqlite_master WHERE type = 'table'");
  if (tables.empty()) return "";
  const std::string table = quoted(tables[random() % tables.size()]);
  const std::vector<std::string> columns = column(handle, "SELECT name FROM pragma_table_info(" + table + ")");
  if (columns.empty()) return "";
  const std::string name = quoted(columns[random() % columns.size()]);
  static constexpr std::array kValues{
      "NULL",    "0",     "-1",      "9223372036854775807", "-9223372036854775808", "1e300", "''", "'x'",
      "x'00ff'", "rowid", "-(rowid)"};
  const std::string some = " WHERE random() % 4 = 0";
  switch (random() % 8) {
    case 0:
      return "DELETE FROM " + table + some;
    case 1:
      return "INSERT OR IGNORE INTO " + table + " SELECT * FROM " + table + some;
    case 2:
      return "ALTER TABLE " + table + " DROP COLUMN " + name;
    case 3:
      return random() % 4 == 0 ? "DROP TABLE " + table
                               : "ALTER TABLE " + table + " RENAME COLUMN " + name + " TO other";
    default:
      return "UPDATE OR IGNORE " + table + " SET " + name + " = " + kValues[random() % kValues.size()] +
             (random() % 2 == 0 ? some : "");
  }
}

}  // namespace

std::string mutate_sqlite(std::string_view bytes, Random& random) {
  const Connection connection = open(std::string{bytes});
  if (!connection) return "";
  sqlite3_exec(connection.get(), change(connection.get(), random).c_str(), nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> made{
      sqlite3_serialize(connection.get(), "main", &size, 0), &sqlite3_free};
  return made == nullptr ? "" : std::string{reinterpret_cast<const char*>(made.get()), static_cast<std::size_t>(size)};
}

}  // namespace tidepool::fuzz
