// Bytes of SQLite files, for tests of importers.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace tidepool::tests {

/// The file of a database that these statements make. Pages are small, so that the file is small.
inline std::string database(const std::string& sql) {
  sqlite3* opened = nullptr;
  if (sqlite3_open(":memory:", &opened) != SQLITE_OK) throw std::runtime_error{"cannot open a database in memory"};
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle{opened, sqlite3_close};
  if (sqlite3_exec(opened, ("PRAGMA page_size = 512;" + sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error{sqlite3_errmsg(opened)};
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes{sqlite3_serialize(opened, "main", &size, 0),
                                                                      sqlite3_free};
  return {reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)};
}

}  // namespace tidepool::tests
