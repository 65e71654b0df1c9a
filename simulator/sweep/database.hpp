// Results of sweeps on disk: an SQLite file with one row for each run, and what was measured of them.
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

#include "simulator/sweep/claim_lock.hpp"
#include "simulator/sweep/result_row.hpp"
#include "traces/quantity.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace tidepool {

/// A row and the key of its run.
struct KeyedRow {
  std::string key;
  Row row;
};

/// One run gave two results: a policy that is not deterministic, or two programs that call themselves the same version.
class Disagreement : public std::runtime_error {
 public:
  /// @param source  where `row` comes from, as in "b.sqlite"
  /// @param origin  where `other`, of the same key, comes from
  Disagreement(std::string source, KeyedRow row, const std::string& origin, Row other);

  const std::string& key() const { return row_.key; }
  /// The same with another name for where the other row comes from.
  Disagreement from(const std::string& origin) const { return {source_, row_, origin, other_}; }

 private:
  std::string source_;
  KeyedRow row_;
  Row other_;
};

/// What an executor measured of the plan of a run.
struct MeasuredRun {
  std::string run_key, backend;
  std::string device = {};  ///< "NVIDIA H200", "" for the host
  std::int64_t repeat = 1;  ///< the how manieth of the same
  std::string outcome = "ok", message = {};
  std::optional<Nanos> predicted = {}, measured = {};  ///< of the whole plan, all of its iterations
  std::optional<Bytes> peak = {}, corrupt = {};
};

/// Who does a run that somebody asks for.
enum class Claim : std::uint8_t {
  kTaken,      ///< the one who asked
  kDone,       ///< nobody: it is in the database, and did not fail
  kElsewhere,  ///< another sweep, which is alive
};

/// A sweep that was asked for, so that it can be resumed.
struct SweepRequest {
  std::string version, request;  ///< of the program; JSON
};

/// The tables and views of DATABASE.md; `runs` has `run_key` and a column for each of result_columns() ("stall_ns.h2d"
/// is called stall_ns_h2d). Written ahead (WAL), so that readers see whole transactions and a killed writer loses only
/// the one it was in. One thread at a time; several processes may write to one file.
class Database {
 public:
  enum class Open : std::uint8_t { kMayCreate, kExisting };

  /// Opens a file of results or makes one. ":memory:" is forgotten with this object.
  /// @throws InputError  "r.sqlite: not a database of sweep results; expected a new file or one that sweep wrote",
  ///                     "r.sqlite: schema version 7; this tidepool reads and writes version 5",
  ///                     "r.sqlite: no such file; expected a database that sweep wrote"
  explicit Database(const std::string& path, Open open = Open::kMayCreate);

  const std::string& path() const { return path_; }
  /// Whether a file that begins with these 100 bytes is a database of sweep results, of any version.
  static bool is_ours(std::string_view head);

  /// Takes up to `most` of these runs for one of several sweeps that write to this file. A claim holds until the row is
  /// inserted, the claim is released, or its holder's lock is gone.
  /// @return  for each run that was looked at, in their order
  std::vector<Claim> claim(std::span<const std::string> keys, std::size_t most, const ClaimLock& lock);
  void release(const ClaimLock& lock);

  /// Writes all rows or none. A row replaces one of the same key that failed; any other stays, and is the same.
  /// @param source  what to call where the rows come from, if they contradict those that are there
  /// @throws Disagreement
  /// @throws std::runtime_error  if the file cannot be written
  void insert(std::span<const KeyedRow> rows, const std::string& source = "this run");
  /// What was measured is never replaced: where a repeat of this number says something else, it becomes the next one.
  void insert(std::span<const MeasuredRun> measurements);
  void insert(const SweepRequest& request);

  std::optional<Row> find(const std::string& key) const;
  /// The row of a run that each() has shown. @throws InputError  as check(), if it cannot be found again
  Row get(const std::string& key) const;
  /// The outcome of a run, nothing if it is not there. Cheaper than find().
  std::optional<std::string> outcome(const std::string& key) const;
  std::int64_t runs() const;
  /// The versions of the programs that did the runs, sorted.
  std::vector<std::string> versions() const;
  /// Every run in the order of keys, one after the other, whatever their number.
  void each(const std::function<void(const KeyedRow&)>& visit) const;
  std::vector<MeasuredRun> measurements() const;
  std::vector<SweepRequest> requests() const;

  /// The names of a query's columns and each of its rows as text. A query that would write is refused.
  /// @throws InputError  "SELECT x FROM runs: no such column: x"
  void query(const std::string& sql, const std::function<void(std::span<const std::string> names)>& head,
             const std::function<void(std::span<const Value> values)>& row) const;

  /// @throws InputError  "r.sqlite: damaged: ...; expected a whole database of sweep results"
  void check() const;

 private:
  struct Close {
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

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
  Statement insert_, find_, outcome_;   // after handle_: finalized before it is closed
  Statement holder_, claim_, unclaim_;  // of the table of claims, once there is one
};

}  // namespace tidepool
