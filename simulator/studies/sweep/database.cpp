#include "simulator/studies/sweep/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "simulator/studies/sweep/schema.hpp"
#include "traces/base/error.hpp"
#include "traces/base/utf8.hpp"
#include "traces/content.hpp"

namespace tidepool {
namespace {

constexpr std::chrono::milliseconds kPatience{30'000};  // with a database that another process has locked
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeadBytes = 4096;  // enough to tell text from binary data
const std::string kError{to_text(Outcome::kError)};

std::string insert_row() {
  std::string sql = fmt::format("INSERT OR REPLACE INTO runs (run_key, {}) VALUES (?", schema::column_names());
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

/// Bytes as SQL writes them: x'00ff'.
std::string hexadecimal(const std::string& bytes) {
  std::string text = "x'";
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text + "'";
}

/// A value of a query. SQLite gives the type of each value, since columns of a query have no types. Bytes that are no
/// text become hexadecimal.
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

/// The row that begins at a column of a result.
Row row_of(sqlite3_stmt* statement, int first) {
  Row row;
  for (std::size_t i = 0; i < result_columns().size(); ++i)
    row.push_back(value_of(statement, first + static_cast<int>(i), result_columns()[i].type));
  return row;
}

/// Returns the row if it has every value that all runs have.
/// @throws InputError  "...: damaged: run K has no policy; ..."
Row whole(Row row, const std::string& key, const std::string& path) {
  const auto damaged = [&](const std::string& found) {
    return InputError{
        fmt::format("{}: damaged: run {} {}; expected a whole database of sweep results", path, key, found)};
  };
  for (const char* name : {"trace", "trace_hash", "pool", "policy", "options", "machine", "machine_hash", "seed",
                           "assume", "iterations", "steady", "count_search", "version", "outcome", "addresses"})
    if (std::holds_alternative<std::monostate>(at(row, name))) throw damaged(fmt::format("has no {}", name));
  try {
    static_cast<void>(find_outcome(text_at(row, "outcome")));
  } catch (const InputError&) {
    throw damaged(fmt::format("has outcome '{}'", text_at(row, "outcome")));
  }
  return row;
}

std::string contradiction(const std::string& source, const KeyedRow& keyed, const std::string& origin,
                          const Row& other) {
  const auto shown = [&](std::string_view column) { return value_text(at(keyed.row, column)); };
  const std::string_view column = moved_results(keyed.row, other).at(0);
  return fmt::format(
      "{}: run {} ({} on {}, {}, {} bytes): {} is {}, but {} in {}; expected the same from every worker (is a policy "
      "not "
      "deterministic, or are these two programs of one version?)",
      source, keyed.key, shown("policy"), shown("pool"), shown("trace"), shown("capacity_bytes"), column, shown(column),
      value_text(at(other, column)), origin);
}

/// The URI of a database that does not change, as on a mount without write access: the file or its folder is read-only,
/// and has no log beside it. SQLite would have to write there. "" for another database.
std::string uri_if_fixed(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::absolute(path, unknown).parent_path();
  const bool writable = ::access(path.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0;
  if (writable || !std::filesystem::is_regular_file(path, unknown)) return "";
  if (const auto log = std::filesystem::file_size(path + "-wal", unknown); !unknown && log > 0) return "";
  std::string uri = "file:";
  for (const char c : path) uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string{c};
  return uri + "?immutable=1";
}

void without_log(sqlite3* handle) {
  sqlite3_busy_timeout(handle, 0);
  sqlite3_exec(handle, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

bool failed(const Row& row) { return at(row, "outcome") == Value{kError}; }

}  // namespace

Disagreement::Disagreement(std::string source, KeyedRow row, const std::string& origin, Row other)
    : std::runtime_error{contradiction(source, row, origin, other)},
      source_{std::move(source)},
      row_{std::move(row)},
      other_{std::move(other)} {}

void Database::Close::operator()(sqlite3* handle) const {
  if (leaves_one_file) without_log(handle);
  sqlite3_close(handle);
}
void Database::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(const std::string& path, Open open) : path_{path} {
  if (path.empty())  // SQLite would keep the results in a file that it deletes at the end
    throw InputError{"the name of the database is empty; expected one, as in results.sqlite"};
  if (path == "-")
    throw InputError{"'-' is no database, nor the standard output; expected a name (./- for a database of this name)"};
  sqlite3* handle = nullptr;
  const std::string uri = open == Open::kExisting ? uri_if_fixed(path) : "";
  const int flags = SQLITE_OPEN_READWRITE | (open == Open::kMayCreate ? SQLITE_OPEN_CREATE : 0);
  const int code = uri.empty() ? sqlite3_open_v2(path.c_str(), &handle, flags, nullptr)
                               : sqlite3_open_v2(uri.c_str(), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  handle_.reset(handle);
  if (code == SQLITE_CANTOPEN && open == Open::kExisting && !std::filesystem::exists(path))
    throw InputError{fmt::format("{}: no such file; expected a database that sweep wrote", path)};
  if (code == SQLITE_CANTOPEN && std::filesystem::is_directory(path))
    throw InputError{fmt::format("{}: is a directory; expected a database that sweep wrote", path)};
  if (code != SQLITE_OK) throw InputError{fmt::format("{}: {}", path, sqlite3_errstr(code))};
  sqlite3_busy_timeout(handle, static_cast<int>(kPatience.count()));
  try {
    check_or_create(open);
    insert_ = prepare(insert_row());
    find_ = prepare(fmt::format("SELECT {} FROM runs WHERE run_key = ?", schema::column_names()));
    outcome_ = prepare("SELECT outcome FROM runs WHERE run_key = ?");
  } catch (const std::runtime_error&) {
    if (sqlite3_errcode(handle) == SQLITE_CORRUPT) check();
    throw;
  }
}

void Database::leave_one_file() const { without_log(handle_.get()); }

bool Database::is_ours(const std::string& path) {
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file{path, std::ios::binary};
  std::string head(100, '\0');
  if (!file.read(head.data(), static_cast<std::streamsize>(head.size())) || !head.starts_with(kMagic)) return false;
  std::uint32_t application = 0;  // big-endian
  for (std::size_t i = 68; i < 72; ++i) application = application << 8 | static_cast<unsigned char>(head[i]);
  return application == schema::kApplication;
}

void Database::check_or_create(Open open) {
  const auto foreign = [&] {
    std::string head(kHeadBytes, '\0');
    std::ifstream file{path_, std::ios::binary};
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    const std::string_view what = head.starts_with(kMagic) ? "" : not_text(head);
    return InputError{fmt::format(
        "{}: {}; expected {}{} that sweep wrote", path_, what.empty() ? "not a database of sweep results" : what,
        open == Open::kExisting ? "" : "a new file or ", what.empty() ? "one" : "a database")};
  };
  try {
    execute("BEGIN");  // another process may create the tables between these reads
    const std::int64_t application = number("PRAGMA application_id");
    const std::int64_t version = number("PRAGMA user_version");
    if (application != schema::kApplication &&
        (application != 0 || open == Open::kExisting || number("SELECT count(*) FROM sqlite_master") != 0))
      throw foreign();
    if (application == schema::kApplication && version != schema::kVersion)
      throw InputError{fmt::format("{}: schema version {}; this tidepool reads and writes version {}", path_, version,
                                   schema::kVersion)};
    execute("COMMIT");
  } catch (const std::runtime_error&) {
    if (sqlite3_errcode(handle_.get()) == SQLITE_NOTADB) throw foreign();
    throw;
  }
  if (open == Open::kExisting) return;
  handle_.get_deleter().leaves_one_file = true;
  use_write_ahead_log();
  execute("PRAGMA synchronous = NORMAL");
  transact([&] {  // another process may create the tables at the same time
    if (number("PRAGMA application_id") != 0) return;
    execute(schema::create());
    execute(fmt::format("PRAGMA application_id = {}", schema::kApplication));
    execute(fmt::format("PRAGMA user_version = {}", schema::kVersion));
  });
}

void Database::use_write_ahead_log() {
  const auto last = std::chrono::steady_clock::now() + kPatience;
  // For this statement alone, SQLite does not wait while others use the database.
  while (sqlite3_exec(handle_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr) == SQLITE_BUSY &&
         std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  execute("PRAGMA journal_mode = WAL");
}

void Database::check() const {
  std::string found;
  const auto damaged = [&] {
    return InputError{fmt::format("{}: damaged: {}; expected a whole database of sweep results", path_, found)};
  };
  try {
    const Statement statement = prepare("PRAGMA quick_check(1)");
    if (step(statement.get())) found = text_of(statement.get(), 0);
  } catch (const std::runtime_error&) {
    found = sqlite3_errmsg(handle_.get());
    throw damaged();
  }
  if (found != "ok") throw damaged();
}

void Database::fail(int code) const {
  const std::string message =
      fmt::format("{}: {}", path_, code == SQLITE_ERROR ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code));
  const int extended = sqlite3_extended_errcode(handle_.get());
  const bool unreadable = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || extended == SQLITE_IOERR_READ ||
                          extended == SQLITE_IOERR_SHORT_READ;
  if (unreadable) throw InputError{message};
  throw std::runtime_error{message};
}

void Database::execute(const std::string& sql) const {
  if (const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr); code != SQLITE_OK)
    fail(code);
}

Database::Statement Database::prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr);
  if (code != SQLITE_OK) fail(code);
  return Statement{statement};
}

/// Whether there is another row.
bool Database::step(sqlite3_stmt* statement) const {
  const int code = sqlite3_step(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) {
    sqlite3_reset(statement);
    fail(code);
  }
  return code == SQLITE_ROW;
}

void Database::run_once(sqlite3_stmt* statement) const {
  step(statement);
  sqlite3_reset(statement);
}

std::int64_t Database::number(const char* sql) const {
  const Statement statement = prepare(sql);
  if (!step(statement.get())) fail(SQLITE_ERROR);
  return sqlite3_column_int64(statement.get(), 0);
}

template <class Write>
void Database::transact(const Write& write) {
  execute("BEGIN IMMEDIATE");
  try {
    write();
    execute("COMMIT");
  } catch (...) {
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

void Database::insert(std::span<const KeyedRow> rows, const std::string& source) {
  if (rows.empty()) return;
  transact([&] {
    for (const KeyedRow& keyed : rows) {
      if (const auto known = find(keyed.key); known && !failed(*known)) {
        if (failed(keyed.row) || moved_results(*known, keyed.row).empty()) continue;
        throw Disagreement{source, keyed, path_, *known};
      }
      bind(insert_.get(), 1, keyed.key);
      for (std::size_t i = 0; i < keyed.row.size(); ++i) bind(insert_.get(), static_cast<int>(i) + 2, keyed.row[i]);
      run_once(insert_.get());
    }
    if (!unclaim_) return;
    for (const KeyedRow& keyed : rows) {
      bind(unclaim_.get(), 1, keyed.key);
      run_once(unclaim_.get());
    }
  });
}

std::vector<Claim> Database::claim(std::span<const std::string> keys, std::size_t most, const ClaimLock& lock) {
  if (!claim_) {
    execute(schema::kCreateClaims);
    holder_ = prepare("SELECT holder FROM claims WHERE run_key = ?");
    claim_ = prepare("INSERT OR REPLACE INTO claims VALUES (?, ?)");
    unclaim_ = prepare("DELETE FROM claims WHERE run_key = ?");
  }
  std::vector<Claim> claims;
  const auto take = [&](const std::string& key) {
    if (const auto known = outcome(key); known && *known != kError) return Claim::kDone;
    bind(holder_.get(), 1, key);
    const bool claimed = step(holder_.get());
    const std::int64_t holder = claimed ? sqlite3_column_int64(holder_.get(), 0) : 0;
    sqlite3_reset(holder_.get());
    if (claimed && lock.is_held(holder)) return Claim::kElsewhere;
    bind(claim_.get(), 1, key);
    sqlite3_bind_int64(claim_.get(), 2, lock.holder());
    run_once(claim_.get());
    return Claim::kTaken;
  };
  transact([&] {
    for (std::size_t taken = 0; claims.size() < keys.size() && taken < most; taken += claims.back() == Claim::kTaken)
      claims.push_back(take(keys[claims.size()]));
  });
  return claims;
}

void Database::release(const ClaimLock& lock) {
  const Statement statement = prepare("DELETE FROM claims WHERE holder = ?");
  sqlite3_bind_int64(statement.get(), 1, lock.holder());
  run_once(statement.get());
}

void Database::insert(std::span<const MeasuredRun> measurements) {
  if (measurements.empty()) return;
  const Statement statement = prepare(R"sql(
    INSERT INTO measurements SELECT ?1, ?2, ?3, iif(taken, next, ?4), ?5, ?6, ?10, ?7, ?8, ?9
    FROM (SELECT ifnull(max(repeat = ?4), 0) AS taken, ifnull(max(repeat), 0) + 1 AS next,
                 ifnull(max(outcome = ?5 AND message IS ?6 AND measured_ns IS ?7 AND measured_peak_bytes IS ?8
                            AND corrupt_bytes IS ?9), 0) AS known
          FROM measurements WHERE run_key = ?1 AND backend = ?2 AND device = ?3)
    WHERE NOT (taken AND known))sql");
  const auto count = [](const auto& quantity) { return quantity ? Value{quantity->count()} : Value{}; };
  transact([&] {
    for (const MeasuredRun& one : measurements) {
      const Row row{one.run_key,         one.backend,     one.device,
                    one.repeat,          one.outcome,     one.message.empty() ? Value{} : Value{one.message},
                    count(one.measured), count(one.peak), count(one.corrupt),
                    count(one.predicted)};
      for (std::size_t i = 0; i < row.size(); ++i) bind(statement.get(), static_cast<int>(i) + 1, row[i]);
      run_once(statement.get());
    }
  });
}

void Database::insert(const SweepRequest& request) {
  const std::string key = content_key(request.version + "\n" + request.request);
  const Statement statement = prepare("INSERT OR IGNORE INTO sweeps VALUES (?, ?, ?)");
  bind(statement.get(), 1, key);
  bind(statement.get(), 2, request.version);
  bind(statement.get(), 3, request.request);
  run_once(statement.get());
}

std::optional<Row> Database::find(const std::string& key) const {
  std::optional<Row> row;
  bind(find_.get(), 1, key);
  if (step(find_.get())) row = row_of(find_.get(), 0);
  sqlite3_reset(find_.get());
  if (row) row = whole(*std::move(row), key, path_);
  return row;
}

Row Database::get(const std::string& key) const {
  if (std::optional<Row> row = find(key)) return *std::move(row);
  throw InputError{fmt::format(
      "{}: damaged: run {} is not where its key says; expected a whole database of sweep results", path_, key)};
}

std::optional<std::string> Database::outcome(const std::string& key) const {
  std::optional<std::string> found;
  bind(outcome_.get(), 1, key);
  if (step(outcome_.get())) found = text_of(outcome_.get(), 0);
  sqlite3_reset(outcome_.get());
  return found;
}

std::int64_t Database::runs() const { return number("SELECT count(*) FROM runs"); }

std::vector<std::string> Database::versions() const {
  std::vector<std::string> versions;
  const Statement statement = prepare("SELECT DISTINCT version FROM runs ORDER BY version");
  while (step(statement.get())) versions.push_back(text_of(statement.get(), 0));
  return versions;
}

void Database::each(const std::function<void(KeyedRow&&)>& visit) const {
  const Statement statement =
      prepare(fmt::format("SELECT run_key, {} FROM runs ORDER BY run_key", schema::column_names()));
  while (step(statement.get())) {
    const std::string key = text_of(statement.get(), 0);
    visit({key, whole(row_of(statement.get(), 1), key, path_)});
  }
}

std::vector<MeasuredRun> Database::measurements() const {
  std::vector<MeasuredRun> all;
  const Statement statement = prepare("SELECT * FROM measurements ORDER BY run_key, backend, device, repeat");
  while (step(statement.get())) {
    sqlite3_stmt* at = statement.get();
    MeasuredRun one{.run_key = text_of(at, 0),
                    .backend = text_of(at, 1),
                    .device = text_of(at, 2),
                    .repeat = sqlite3_column_int64(at, 3),
                    .outcome = text_of(at, 4),
                    .message = text_of(at, 5)};
    if (!is_null(at, 6)) one.predicted = Nanos{sqlite3_column_int64(at, 6)};
    if (!is_null(at, 7)) one.measured = Nanos{sqlite3_column_int64(at, 7)};
    if (!is_null(at, 8)) one.peak = Bytes{sqlite3_column_int64(at, 8)};
    if (!is_null(at, 9)) one.corrupt = Bytes{sqlite3_column_int64(at, 9)};
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<SweepRequest> Database::requests() const {
  std::vector<SweepRequest> all;
  const Statement statement = prepare("SELECT version, request FROM sweeps ORDER BY sweep_key");
  while (step(statement.get())) all.push_back({text_of(statement.get(), 0), text_of(statement.get(), 1)});
  return all;
}

void Database::query(const std::string& sql, const std::function<void(std::span<const std::string>)>& head,
                     const std::function<void(std::span<const Value>)>& row) const {
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
  while (step(prepared)) {
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = value_of(prepared, i);
    row(values);
  }
}

}  // namespace tidepool
