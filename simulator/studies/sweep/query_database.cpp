// Queries of people, which may be any SELECT.
#include <fmt/format.h>
#include <sqlite3.h>

#include <string_view>

#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/schema.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr int kStepsAtOnce = 10'000;     // of SQLite's virtual machine, between two questions whether to stop: 1 ms
constexpr int kLongestValue = 16 << 20;  // bytes; zeroblob(1e9) asks for more

/// While an object lives, stop() ends the statements of a database.
class Watch {
 public:
  Watch(sqlite3* handle, const std::function<bool()>& stop) : handle_{handle}, stop_{stop} {
    if (stop_) sqlite3_progress_handler(handle_, kStepsAtOnce, ask, this);
  }
  ~Watch() { sqlite3_progress_handler(handle_, 0, nullptr, nullptr); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static int ask(void* watch) { return static_cast<Watch*>(watch)->stop_() ? 1 : 0; }

  sqlite3* handle_;
  const std::function<bool()>& stop_;
};

}  // namespace

bool Database::query(const std::string& sql, const std::function<void(std::span<const std::string>)>& head,
                     const std::function<void(std::span<const Value>)>& row, const std::function<bool()>& stop) const {
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_LENGTH, kLongestValue);
  const Watch watch{handle_.get(), stop};
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &prepared, &rest);
  const Statement statement{prepared};
  if (code != SQLITE_OK) throw InputError{fmt::format("{}: {}", sql, sqlite3_errmsg(handle_.get()))};
  if (prepared == nullptr || sqlite3_stmt_readonly(prepared) == 0 || sqlite3_column_count(prepared) == 0)
    throw InputError{fmt::format("'{}' is no query; expected one SELECT", sql)};
  if (std::string_view{rest}.find_first_not_of(" \t\r\n;") != std::string_view::npos)
    throw InputError{fmt::format("'{}' follows the first query; expected one SELECT", rest)};
  const int count = sqlite3_column_count(prepared);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(sqlite3_column_name(prepared, i));
  head(names);
  std::vector<Value> values(names.size());
  for (;;) {
    const int found = sqlite3_step(prepared);
    if (found == SQLITE_INTERRUPT || found == SQLITE_DONE) return found == SQLITE_DONE;
    if (found != SQLITE_ROW) fail(found);
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = value_of(prepared, i);
    row(values);
  }
}

}  // namespace tidepool
