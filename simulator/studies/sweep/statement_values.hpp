// Values of SQLite's statements: parameters, and columns of results.
#pragma once

#include <string>

#include "simulator/studies/sweep/result_row.hpp"

struct sqlite3_stmt;

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
