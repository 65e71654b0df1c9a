#include "simulator/studies/sweep/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "simulator/studies/sweep/schema.hpp"
#include "traces/base/error.hpp"
#include "traces/content.hpp"

namespace tidepool {

namespace {

std::int64_t random_byte() {
  std::random_device random;
  return static_cast<std::int64_t>((std::uint64_t{random()} << 32 | random()) >> 2);
}

/// Calls fcntl() on a range of bytes: `command` takes a lock, or finds a lock that conflicts with it. The lock belongs
/// to the open file, not to the process. @param bytes  length of the range; 0: all bytes from `first` on
int lock(int file, int command, std::int64_t first, std::int64_t bytes, struct flock& range) {
  range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = bytes;
  return fcntl(file, command, &range);
}

std::string locks_of(const std::string& database) { return std::filesystem::canonical(database).string() + "-workers"; }

const std::string kError{to_text(Outcome::kError)};

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

bool failed(const Row& row) { return at(row, "outcome") == Value{kError}; }

}  // namespace

ClaimLock::ClaimLock(const std::string& database) : path_{locks_of(database)}, holder_{random_byte()} {
  struct flock range;
  struct stat status = {};
  while (status.st_nlink == 0) {  // the file was removed after it was opened and before it was locked
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0 || lock(file_, F_OFD_SETLKW, holder_, 1, range) != 0 || fstat(file_, &status) != 0) {
      const int why = errno;
      if (file_ >= 0) ::close(file_);
      throw std::runtime_error{fmt::format("{}: cannot be locked: {}", path_, std::strerror(why))};
    }
  }
}

ClaimLock::~ClaimLock() {
  struct flock range;
  if (lock(file_, F_OFD_SETLK, 0, 0, range) == 0) ::unlink(path_.c_str());  // nobody else holds a byte of it
  ::close(file_);
}

bool ClaimLock::file_exists(const std::string& database) { return std::filesystem::exists(locks_of(database)); }

bool ClaimLock::is_held(std::int64_t holder) const {
  struct flock range;
  return lock(file_, F_OFD_GETLK, holder, 1, range) != 0 || range.l_type != F_UNLCK;
}

Disagreement::Disagreement(std::string source, KeyedRow row, const std::string& origin, Row other)
    : std::runtime_error{contradiction(source, row, origin, other)},
      source_{std::move(source)},
      row_{std::move(row)},
      other_{std::move(other)} {}

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

}  // namespace tidepool
