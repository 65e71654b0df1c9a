#include "simulator/studies/sweep/statement_values.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <variant>

#include "traces/base/utf8.hpp"

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
