// The SQL of a database of results (tables, views and names of columns; DATABASE.md describes them for users), and the
// values of its statements.
#pragma once

#include <string>

#include "simulator/studies/sweep/result_row.hpp"

struct sqlite3_stmt;

namespace tidepool::schema {

inline constexpr int kApplication = 0x54696465;  ///< "Tide", the application_id of the files
inline constexpr int kVersion = 6;               ///< the user_version of the files that this program writes

/// The table of claims: runs in progress, each with the sweep that does it. The first sweep creates it; it is not part
/// of the results.
inline constexpr const char* kCreateClaims =
    "CREATE TABLE IF NOT EXISTS claims (run_key TEXT NOT NULL PRIMARY KEY, holder INTEGER NOT NULL) WITHOUT ROWID";

/// The database's name of a column: "stall_ns_h2d" for "stall_ns.h2d".
std::string column_name(const Column& column);

/// The names of all columns of the table `runs` but run_key, with commas between them.
std::string column_names();

/// Makes every table and view.
std::string create();

}  // namespace tidepool::schema

namespace tidepool {

/// `text` must live until the statement has run.
void bind(sqlite3_stmt* statement, int index, const std::string& text);
void bind(sqlite3_stmt* statement, int index, const Value& value);

/// The text of a column; "" for NULL.
std::string text_of(sqlite3_stmt* statement, int column);
bool is_null(sqlite3_stmt* statement, int column);

Value value_of(sqlite3_stmt* statement, int column, ColumnType type);
/// A value of a query. SQLite gives the type of each value, since columns of a query have no types. Bytes that are no
/// text become hexadecimal.
Value value_of(sqlite3_stmt* statement, int column);

}  // namespace tidepool
