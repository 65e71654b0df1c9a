// Small reports for tests, in the form of Nsight Systems exports, with the columns that the reader uses.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/sqlite_writer.hpp"

namespace tidepool::tests {

/// A report, built statement by statement. Times are in ns; correlation ids count the calls.
class NsysWriter {
 public:
  static constexpr const char* kTables =
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
      "returnValue INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER, contextId "
      "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
      "correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER);";
  static constexpr const char* kMemoryTable =
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId "
      "INTEGER, "
      "address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, name TEXT, streamId INTEGER);";
  static constexpr std::int64_t kProcess = 42 << 24;
  static constexpr std::int64_t kNone = 0xffffffff;
  static constexpr std::int64_t kDeviceMemory = 2, kPinnedMemory = 1, kDeviceStatic = 5, kManagedStatic = 6;

  std::int64_t process = kProcess;  ///< process of the next records

  void sql(const std::string& statement) { sql_ += statement; }
  void memory_table() { sql(kMemoryTable); }

  /// A kernel that the host launches at `launch`, and that runs on the GPU from `start` to `end`.
  void kernel(const std::string& name, std::int64_t launch, std::int64_t start, std::int64_t end,
              std::int64_t stream = 7, std::int64_t device = 0) {
    const int id = ++strings_;
    sql(fmt::format("INSERT INTO StringIds VALUES({}, 'void {}<float>(int)'), ({}, '{}');", id, name, id + 1000, name));
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES({},{},{},1,{},{},{},{},{});", start, end, device,
                    stream, call(launch), process, id, id + 1000));
  }
  void copy(int kind, std::int64_t launch, std::int64_t start, std::int64_t end, std::int64_t stream = 7) {
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES({},{},0,1,{},{},{},{});", start, end, stream,
                    call(launch), process, kind));
  }
  void memset(std::int64_t launch, std::int64_t start, std::int64_t end) {
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES({},{},0,1,7,{},{});", start, end, call(launch),
                    process));
  }
  void memory(bool frees, std::int64_t time, std::int64_t address, std::int64_t bytes,
              std::int64_t kind = kDeviceMemory, std::int64_t device = 0) {
    sql(fmt::format("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES({},{},{},1,{},{},{},{},NULL,{});", time, process,
                    device, address, bytes, kind, frees ? 1 : 0, kNone));
  }
  void record(std::int64_t event, std::int64_t time, std::int64_t stream, std::int64_t sync_id = 0) {
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(0,1,{},{},{},{},{});", stream, call(time),
                    process, event, sync_id));
  }
  /// A wait of the host. `stream` and `event` may be kNone. `result` is the return value of the call; 600 means not
  /// ready.
  void wait(std::int64_t stream, std::int64_t event, std::int64_t time, std::int64_t sync_id = 0, int result = 0) {
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES({},{},0,1,{},{},{},{},{});", time, time,
                    stream, call(time, result), process, event, sync_id));
  }
  /// An NVTX range. `end` is a time, or NULL for a range that has not ended.
  void range(const std::string& name, std::int64_t start, const std::string& end) {
    sql(fmt::format("INSERT INTO NVTX_EVENTS VALUES({},{},59,'{}',NULL);", start, end, name));
  }

  std::string file() const { return database(kTables + sql_); }

 private:
  int call(std::int64_t time, int result = 0) {
    constexpr std::int64_t kThread = 5;
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES({},{},{},{},{});", time, time + 1,
                    process + kThread, ++calls_, result));
    return calls_;
  }

  std::string sql_;
  int strings_ = 0, calls_ = 0;
};

}  // namespace tidepool::tests
