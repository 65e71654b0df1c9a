// Results of sweeps on disk: an SQLite file with one row for each run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "simulator/result_row.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tidepool {

/// A row and the key of its run.
struct KeyedRow {
  std::string key;
  Row row;
};

/// The table `runs`: `run_key` and a column for each of result_columns() ("stall_ns.h2d" is called stall_ns_h2d).
/// Written ahead (WAL), so that readers see whole transactions and a killed writer loses only the one it was in. One
/// thread at a time; several processes may write to one file.
class Database {
 public:
  /// Opens a file of results or makes one. ":memory:" is forgotten with this object.
  /// @throws InputError  "r.sqlite: not a database of sweep results; expected a new file or one that sweep wrote",
  ///                     "r.sqlite: schema version 7; this tidepool reads and writes version 2"
  explicit Database(const std::string& path);

  /// Writes all rows or none; a row replaces one of the same key.
  /// @throws std::runtime_error  if the file cannot be written
  void insert(std::span<const KeyedRow> rows);

  std::optional<Row> find(const std::string& key) const;
  /// The outcome of a run, nothing if it is not there. Cheaper than find().
  std::optional<std::string> outcome(const std::string& key) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void execute(const char* sql) const;
  std::int64_t number(const char* sql) const;
  Statement prepare(const std::string& sql) const;
  [[noreturn]] void fail(int code) const;
  void check_or_create();

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
  Statement insert_, find_, outcome_;  // after handle_: finalized before it is closed
};

}  // namespace tidepool
