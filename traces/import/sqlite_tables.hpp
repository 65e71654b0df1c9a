// A reader of the tables of an SQLite file from another program, given as bytes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/input.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tidepool {

/// A column to read. If a table lacks a column that is not required, the column is null in every row.
struct SqliteColumn {
  const char* name;
  bool required = true;
};

/// One row of a table, valid while it is visited. Columns are numbered as in the list of wanted columns.
class SqliteRow {
 public:
  bool null(std::size_t column) const;
  /// @throws InputError  "x.sqlite: T: row 5: \"start\" is 'abc'; expected a whole number, 0 to 9"
  std::int64_t whole(std::size_t column, std::int64_t least, std::int64_t most) const;
  /// Nothing where the column is null.
  std::optional<std::int64_t> whole_or_null(std::size_t column, std::int64_t least, std::int64_t most) const;
  /// The text of a column, as UTF-8. If it is not UTF-8, every byte that is not ASCII becomes '?'. "" for null.
  std::string text(std::size_t column) const;

  /// @throws InputError  "x.sqlite: T: row 5: " and the message
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(position());
  }

 private:
  friend class SqliteTables;
  std::string position() const;

  const std::string* file_ = nullptr;
  const char* table_ = nullptr;
  std::span<const SqliteColumn> columns_;
  sqlite3_stmt* statement_ = nullptr;
  std::int64_t number_ = 0;  // counts from 1
};

/// Reads plain tables only: no views, virtual tables or triggers. Refuses a file that needs more work than a sound file
/// of its size can. The bytes are not changed. They are copied only if their header says that there is a write-ahead
/// log.
class SqliteTables {
 public:
  /// @param input  must outlive this object
  /// @throws InputError  "x.sqlite: not an SQLite database", "x.sqlite: database disk image is malformed"
  /// @throws InputError  "x.sqlite: part of it may still be in x.sqlite-wal; expected a database that was closed, ..."
  explicit SqliteTables(const Input& input);

  bool has(const std::string& table) const { return tables_.contains(table); }

  /// Visits all rows, in the order in which the file keeps them. A table that the file lacks has none.
  /// @throws InputError  "x.sqlite: T: no column 'start'; expected start, end, ...", what SQLite says about damage, and
  ///                     what `visit` throws
  void each(const char* table, std::span<const SqliteColumn> columns,
            const std::function<void(const SqliteRow&)>& visit) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  Statement prepare(const std::string& position, const std::string& sql) const;
  void count_bytes(const std::string& position, sqlite3_stmt* row) const;
  [[noreturn]] void fail(const std::string& position, int code) const;

  const Input& input_;
  std::string rollback_mode_;  ///< the changed copy of a file with a write-ahead log
  std::unique_ptr<sqlite3, Close> handle_;
  std::set<std::string> tables_;
  std::unique_ptr<std::int64_t> steps_left_;  // on the heap, since SQLite keeps its address to count it down
  mutable std::int64_t bytes_left_;           // of texts and blobs
};

}  // namespace tidepool
