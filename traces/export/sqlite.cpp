// A run as a database with the tables and columns of an exported Nsight Systems report, for SQL and for tools that read
// those. import --format nsys reads it back.
#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "traces/export/exporter.hpp"
#include "traces/export/recording.hpp"
#include "traces/op_names.hpp"

namespace tidepool {
namespace {

constexpr const char* kTables =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
    "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER, returnValue INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
    "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId "
    "INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId "
    "INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);"
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, "
    "address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, name TEXT, streamId INTEGER);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER);"
    "BEGIN;";

/// Inserts rows into one table with one prepared statement.
class Insert {
 public:
  Insert(sqlite3* database, const char* table, int columns) : database_{database} {
    std::string marks = "?";
    for (int i = 1; i < columns; ++i) marks += ",?";
    check(sqlite3_prepare_v2(database, fmt::format("INSERT INTO {} VALUES({})", table, marks).c_str(), -1, &statement_,
                             nullptr));
  }
  ~Insert() { sqlite3_finalize(statement_); }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;

  template <class... Values>
  void row(const Values&... values) {
    int column = 0;
    (bind(++column, values), ...);
    if (sqlite3_step(statement_) != SQLITE_DONE) throw std::runtime_error{sqlite3_errmsg(database_)};
    check(sqlite3_reset(statement_));
  }

 private:
  void check(int result) const {
    if (result != SQLITE_OK) throw std::runtime_error{sqlite3_errmsg(database_)};
  }
  void bind(int column, std::int64_t value) { check(sqlite3_bind_int64(statement_, column, value)); }
  void bind(int column, std::optional<std::int64_t> value) {
    check(value ? sqlite3_bind_int64(statement_, column, *value) : sqlite3_bind_null(statement_, column));
  }
  void bind(int column, const std::string& value) {
    check(sqlite3_bind_text(statement_, column, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
  }

  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

class DatabaseWriter {
 public:
  explicit DatabaseWriter(const Recording& recording)
      : recording_{recording}, lanes_{lane_numbers(recording)}, database_{open(), sqlite3_close} {
    execute(kTables);
  }

  std::string run() {
    {
      Insert meta{database_.get(), "META_DATA_EXPORT", 2}, gpu{database_.get(), "TARGET_INFO_GPU", 2};
      for (const auto& [key, value] : recording_.meta) {
        meta.row("tidepool." + key, value);
        if (key == "device") gpu.row(std::int64_t{0}, value);
      }
      Insert ranges{database_.get(), "NVTX_EVENTS", 5};
      constexpr std::int64_t kPushed = 59;
      for (const RecordedRange& range : recording_.ranges)
        ranges.row(range.start.count(), range.end.count(), kPushed, range.name, std::optional<std::int64_t>{});
    }
    write_ops();
    write_orders();
    write_memory();
    execute("COMMIT;");
    sqlite3_int64 size = 0;
    const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes{
        sqlite3_serialize(database_.get(), "main", &size, 0), sqlite3_free};
    if (!bytes) throw std::bad_alloc{};
    return {reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)};
  }

 private:
  static constexpr std::int64_t kProcess = std::int64_t{1} << 24;
  static constexpr std::int64_t kDeviceMemory = 2, kWaits = 2;

  static sqlite3* open() {
    sqlite3* opened = nullptr;
    if (sqlite3_open(":memory:", &opened) != SQLITE_OK) throw std::bad_alloc{};
    return opened;
  }

  void execute(const char* sql) {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error{sqlite3_errmsg(database_.get())};
  }

  std::int64_t string(Insert& strings, const std::string& value) {
    const auto [entry, added] = strings_.try_emplace(value, static_cast<std::int64_t>(strings_.size() + 1));
    if (added) strings.row(entry->second, value);
    return entry->second;
  }

  std::int64_t lane(StreamId stream) const { return lanes_[stream.index()]; }

  void write_ops() {
    Insert strings{database_.get(), "StringIds", 2}, kernels{database_.get(), "CUPTI_ACTIVITY_KIND_KERNEL", 9},
        copies{database_.get(), "CUPTI_ACTIVITY_KIND_MEMCPY", 8},
        memsets{database_.get(), "CUPTI_ACTIVITY_KIND_MEMSET", 7};
    for (const RecordedOp& op : recording_.ops) {
      const std::int64_t start = op.start.count(), end = (op.start + op.duration).count(), device = op.device;
      const std::int64_t correlation = call(op.launch);
      if (op.kind == OpKind::kCopy) {
        copies.row(start, end, device, device + 1, lane(op.stream), correlation, kProcess, copy_kind(op.name));
      } else if (op.kind == OpKind::kMemset) {
        memsets.row(start, end, device, device + 1, lane(op.stream), correlation, kProcess);
      } else {
        const std::int64_t name = string(strings, op.name);
        kernels.row(start, end, device, device + 1, lane(op.stream), correlation, kProcess, name, name);
      }
    }
  }

  /// The kind of a copy by its name, as in "memcpy HtoD", or from torch.profiler "Memcpy HtoD (Pinned -> Device)".
  static std::int64_t copy_kind(std::string_view name) {
    constexpr std::size_t kKinds = 14;
    std::string known{name.substr(0, name.find(" ("))};
    if (known.starts_with('M')) known.front() = 'm';
    for (std::size_t kind = 1; kind < kKinds; ++kind)
      if (copy_name(kind) == known) return static_cast<std::int64_t>(kind);
    return 0;
  }

  /// Writes each order as an event that is recorded right after the first op and waited for right before the second.
  void write_orders() {
    Insert events{database_.get(), "CUPTI_ACTIVITY_KIND_CUDA_EVENT", 7},
        waits{database_.get(), "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 10};
    std::int64_t number = 0;
    for (const Order& order : recording_.orders) {
      const RecordedOp &before = recording_.ops[order.before.index()], &after = recording_.ops[order.after.index()];
      ++number;
      const std::int64_t device = before.device;
      events.row(device, device + 1, lane(before.stream), call(before.launch + Nanos{1}), kProcess, number, number);
      const std::int64_t time = after.launch.count();
      waits.row(time, time, std::int64_t{after.device}, std::int64_t{after.device} + 1, lane(after.stream),
                call(after.launch), kProcess, kWaits, number, number);
    }
  }

  /// Adds a call of the host at a time. @return  its correlation id
  std::int64_t call(Nanos time) {
    if (!calls_) calls_.emplace(database_.get(), "CUPTI_ACTIVITY_KIND_RUNTIME", 6);
    calls_->row(time.count(), time.count(), kProcess + 1, ++correlation_, std::optional<std::int64_t>{},
                std::int64_t{0});
    return correlation_;
  }

  /// Buffers that existed before and are never freed have no row, as in a report.
  void write_memory() {
    calls_.reset();
    Insert memory{database_.get(), "CUDA_GPU_MEMORY_USAGE_EVENTS", 10};
    for (const RecordedBlock& event : recording_.memory) {
      const bool frees = event.action == RecordedAction::kFree;
      if (!frees && event.action != RecordedAction::kAlloc) continue;
      memory.row(event.time.count(), kProcess, std::int64_t{event.device}, std::int64_t{event.device} + 1,
                 event.address, event.size.count(), kDeviceMemory, std::int64_t{frees}, event.name, lane(event.stream));
    }
  }

  const Recording& recording_;
  const std::vector<std::int64_t> lanes_;  // numbers
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database_;
  std::map<std::string, std::int64_t> strings_;
  std::optional<Insert> calls_;
  std::int64_t correlation_ = 0;
};

std::string to_database(const Recording& recording) {
  require_addresses(recording);
  return DatabaseWriter{recording}.run();
}

const RegisterExporter kSqlite{{.name = "sqlite",
                                .summary = "a database with the tables of an exported Nsight Systems report",
                                .write_recording = to_database}};

}  // namespace
}  // namespace tidepool
