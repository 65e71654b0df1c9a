// Results of sweeps on disk: an SQLite file with one row for each run, and the measurements of executed plans.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/quantity.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tidepool {

/// A lock on one byte of the file PATH-workers beside a database, from construction to destruction. The kernel releases
/// it when the process ends in any way, so the claims of a killed sweep end at once. The last holder removes the file.
class ClaimLock {
 public:
  /// @param database  a file that exists
  /// @throws std::runtime_error  "r.sqlite-workers: cannot be locked: No locks available"
  explicit ClaimLock(const std::string& database);
  ~ClaimLock();
  ClaimLock(const ClaimLock&) = delete;
  ClaimLock& operator=(const ClaimLock&) = delete;

  /// Whether the file of locks exists: other sweeps hold locks on it, or a killed one has left it.
  static bool file_exists(const std::string& database);

  /// The position of the locked byte, drawn at random. It identifies this holder in the table of claims.
  std::int64_t holder() const { return holder_; }
  /// Whether another ClaimLock, of any live process, holds the lock on this byte.
  bool is_held(std::int64_t holder) const;

 private:
  std::string path_;
  std::int64_t holder_;
  int file_ = -1;
};

/// A row and the key of its run.
struct KeyedRow {
  std::string key;
  Row row;
};

/// One run gave two results: a policy is not deterministic, or two different programs have the same version.
class Disagreement : public std::runtime_error {
 public:
  /// @param source  origin of `row`, such as "b.sqlite"
  /// @param origin  origin of `other`, a row of the same key
  Disagreement(std::string source, KeyedRow row, const std::string& origin, Row other);

  const std::string& key() const { return row_.key; }
  /// The same error, but its message gives `origin` as the origin of `other`.
  Disagreement from(const std::string& origin) const { return {source_, row_, origin, other_}; }

 private:
  std::string source_;
  KeyedRow row_;
  Row other_;
};

/// The sweep that executes a run.
enum class Claim : std::uint8_t {
  kTaken,      ///< the sweep that called claim()
  kDone,       ///< none: the run is in the database, and did not fail
  kElsewhere,  ///< another sweep, which is alive
};

/// The request of a sweep, stored so that the sweep can be resumed.
struct SweepRequest {
  std::string version, request;  ///< version of the program; request as JSON
};

/// The tables and views of DATABASE.md; `runs` has `run_key` and a column for each of result_columns() ("stall_ns.h2d"
/// is called stall_ns_h2d). With SQLite's write-ahead log, readers see whole transactions, and a killed writer loses
/// only its current transaction. One thread at a time; several processes may write to one file.
class Database {
 public:
  enum class Open : std::uint8_t { kMayCreate, kExisting };

  /// Opens a file of results or creates one. A database ":memory:" ends with this object.
  /// @throws InputError  "r.sqlite: not a database of sweep results; expected a new file or one that sweep wrote",
  ///                     "r.sqlite: schema version 7; this tidepool reads and writes version 5",
  ///                     "r.sqlite: no such file; expected a database that sweep wrote"
  explicit Database(const std::string& path, Open open = Open::kMayCreate);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  /// Whether a file is a database of sweep results, of any version. A pipe is none: it can be read only once, and
  /// SQLite reads no pipes.
  static bool is_ours(const std::string& path);

  /// Takes up to `most` of these runs for one of several sweeps that write to this file. A claim lasts until the row is
  /// inserted, the claim is released, or the lock of its holder ends.
  /// @return  the claims of keys[0], keys[1], ...; it ends at the last key, or earlier when `most` runs are taken
  std::vector<Claim> claim(std::span<const std::string> keys, std::size_t most, const ClaimLock& lock);
  /// Gives up all claims of the holder of this lock.
  void release(const ClaimLock& lock);

  /// Writes all rows or none. A row replaces a failed row of its key. Other stored rows stay.
  /// @param source  the origin of the rows, for the message of a Disagreement
  /// @throws Disagreement  if a row and the stored row of its key have different results, and neither failed
  /// @throws std::runtime_error  if the file cannot be written
  void insert(std::span<const KeyedRow> rows, const std::string& source = "this run");
  /// Adds measurements and replaces none. A measurement that is stored already is ignored. If a different one with the
  /// same repeat number is stored, the new one gets the number after the largest.
  void insert(std::span<const MeasuredRun> measurements);
  void insert(const SweepRequest& request);

  std::optional<Row> find(const std::string& key) const;
  /// The row of a run that each() has visited. @throws InputError  as check(), if the run is not found again
  Row get(const std::string& key) const;
  /// The outcome of a run; none if the database does not have the run. Cheaper than find().
  std::optional<std::string> outcome(const std::string& key) const;
  std::int64_t runs() const;
  /// The versions of the programs that did the runs, sorted.
  std::vector<std::string> versions() const;
  /// Visits every run in the order of keys. Memory does not grow with their number.
  void each(const std::function<void(KeyedRow&&)>& visit) const;
  std::vector<MeasuredRun> measurements() const;
  std::vector<SweepRequest> requests() const;

  /// Calls head() with the names of a query's columns, and row() with each of its rows. A query that would write is
  /// refused.
  /// @param stop  asked all the time; true ends the query
  /// @return  whether the rows are all rows
  /// @throws InputError  "SELECT x FROM runs: no such column: x"
  bool query(const std::string& sql, const std::function<void(std::span<const std::string> names)>& head,
             const std::function<void(std::span<const Value> values)>& row,
             const std::function<bool()>& stop = {}) const;

  /// Puts the write-ahead log into the file, as closing a database that may be created does, so that the file can be
  /// read where nothing can be written. Has no effect while others use the database: the last of them does it.
  void leave_one_file() const;

  /// Checks the whole file for damage.
  /// @throws InputError  "r.sqlite: damaged: ...; expected a whole database of sweep results"
  void check() const;

 private:
  struct Close {
    Close() : leaves_one_file{false} {}
    bool leaves_one_file;
    void operator()(sqlite3* handle) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void execute(const std::string& sql) const;
  std::int64_t number(const char* sql) const;
  Statement prepare(const std::string& sql) const;
  bool step(sqlite3_stmt* statement) const;
  void run_once(sqlite3_stmt* statement) const;
  template <class Write>
  void transact(const Write& write);
  [[noreturn]] void fail(int code) const;
  void check_or_create(Open open);
  void use_write_ahead_log();

  class Copy;

  std::string path_;
  std::unique_ptr<Copy> copy_;  // of a file that SQLite cannot read where it is
  std::unique_ptr<sqlite3, Close> handle_;
  Statement insert_, find_, outcome_;   // declared after handle_, so that they are finalized before it is closed
  Statement holder_, claim_, unclaim_;  // statements on the table of claims; null until the table exists
};

}  // namespace tidepool
