// SQLite exports of Nsight Systems reports (nsys profile --trace=cuda,nvtx --cuda-memory-usage=true, then nsys export
// --type=sqlite). A report does not tell which buffers a kernel uses: the ops have no uses.
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/import/gpu_timeline.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/sqlite_tables.hpp"
#include "traces/op_names.hpp"

namespace tidepool {

namespace {

/// The host call that a record comes from, found by the correlation id.
struct NsysCall {
  std::int64_t start = 0;   ///< ns
  std::int64_t result = 0;  ///< what the call returned; 0 = success
};

/// GPU records of a report, not yet in any order.
struct NsysReport {
  std::unordered_map<std::int64_t, std::string> strings;  ///< by id; `timeline` refers to these texts
  std::set<std::string> graph_names;                      ///< and to these
  GpuTimeline timeline;
  bool has_memory = false;  ///< memory was recorded
  std::string version;      ///< of the exporting program, "" if not recorded
  std::string gpu;          ///< name of the GPU, "" if not recorded or if there are different ones
};

constexpr std::int64_t kMostNsysTime = std::int64_t{1} << 60;
constexpr std::int64_t kMostInReport = std::int64_t{1} << 62;
constexpr std::int64_t kLeastId = -kMostInReport;
constexpr std::int64_t kMostDevice = 65535;

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kEvents = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
constexpr const char* kMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS";

/// Kinds of memory in a report that are no buffers: those of the host, and static variables of loaded modules. CUPTI's
/// numbers are greater by one.
enum MemoryKind : std::int64_t { kPageable = 0, kPinned = 1, kDeviceStatic = 5, kManagedStatic = 6 };

/// An id; -1 for null and for CUPTI's "not applicable", 32 bits of ones.
std::int64_t or_none(std::optional<std::int64_t> id) { return !id || *id == 0xffffffff ? -1 : *id; }

class Parser {
 public:
  explicit Parser(const Input& input) : input_{input}, tables_{input} {}

  NsysReport run() {
    bool any = false;
    for (const char* table : {kKernels, kCopies, kMemsets, kGraphs, kMemory}) any = any || tables_.has(table);
    if (!any)
      throw InputError{fmt::format(
          "{}: no table {}, {}, {}, {} or {}; expected the export of an Nsight Systems report of CUDA activity "
          "(nsys profile --trace=cuda, then nsys export --type=sqlite)",
          input_.path(), kKernels, kCopies, kMemsets, kGraphs, kMemory)};
    if (tables_.has(kKernels) && !tables_.has("StringIds"))
      throw InputError{input_.path() + ": no table StringIds, which has the names of the kernels"};
    read_strings();
    read_calls();
    read_ops();
    read_memory();
    read_syncs();
    read_ranges();
    read_names();
    return std::move(report_);
  }

 private:
  void read_strings() {
    tables_.each("StringIds", std::array{SqliteColumn{"id"}, SqliteColumn{"value"}},
                 [&](const SqliteRow& row) { report_.strings[row.whole(0, kLeastId, kMostInReport)] = row.text(1); });
  }

  std::string_view string(const SqliteRow& row, std::size_t column, const char* name) const {
    const std::int64_t id = row.whole(column, kLeastId, kMostInReport);
    const auto found = report_.strings.find(id);
    if (found == report_.strings.end()) row.refuse("\"{}\" is {}, which StringIds does not have", name, id);
    return found->second;
  }

  static std::int64_t time(const SqliteRow& row, std::size_t column) {
    return row.whole(column, -kMostNsysTime, kMostNsysTime);
  }

  /// A range's length; its start is in the column before `column`.
  static std::int64_t duration(const SqliteRow& row, std::size_t column) {
    const std::int64_t start = time(row, column - 1), end = time(row, column);
    if (end < start) row.refuse("ends at {}, before it starts at {}", end, start);
    return end - start;
  }

  static std::int64_t id(const SqliteRow& row, std::size_t column) {
    return row.whole_or_null(column, kLeastId, kMostInReport).value_or(0);
  }

  void read_calls() {
    const std::array columns{SqliteColumn{"start"}, SqliteColumn{"correlationId", false},
                             SqliteColumn{"globalTid", false}, SqliteColumn{"returnValue", false}};
    tables_.each(kCalls, columns, [&](const SqliteRow& row) {
      if (row.null(1) || row.null(2)) return;
      const std::int64_t process = id(row, 2) & ~std::int64_t{0xffffff};  // the lower 24 bits are the thread
      const NsysCall call{time(row, 0), id(row, 3)};
      const auto [entry, added] = calls_[process].try_emplace(id(row, 1), call);
      if (!added && call.start < entry->second.start) entry->second = call;  // one API may call another
    });
  }

  const NsysCall* call(std::int64_t process, std::int64_t correlation) const {
    const auto calls = calls_.find(process);
    if (calls == calls_.end()) return nullptr;
    const auto found = calls->second.find(correlation);
    return found == calls->second.end() ? nullptr : &found->second;
  }

  void read_ops() {
    std::array<SqliteColumn, 9> columns{{{"start"},
                                         {"end"},
                                         {"deviceId"},
                                         {"streamId"},
                                         {"contextId", false},
                                         {"globalPid", false},
                                         {"correlationId", false},
                                         {"demangledName"},
                                         {"shortName", false}}};
    tables_.each(kKernels, columns, [&](const SqliteRow& row) {
      GpuOp op = read_op(row);
      op.name = string(row, 7, "demangledName");
      const std::string_view plain = row.null(8) ? op.name : string(row, 8, "shortName");
      op.kind = names_collective(plain) ? OpKind::kCollective : OpKind::kKernel;
      report_.timeline.ops.push_back(op);
    });
    columns[7] = {"copyKind", false};
    tables_.each(kCopies, std::span{columns}.first(8), [&](const SqliteRow& row) {
      GpuOp op = read_op(row);
      const auto kind = static_cast<std::size_t>(row.whole_or_null(7, 0, kMostInReport).value_or(0));
      op.name = copy_name(kind);
      op.kind = OpKind::kCopy;
      report_.timeline.ops.push_back(op);
    });
    tables_.each(kMemsets, std::span{columns}.first(7), [&](const SqliteRow& row) {
      GpuOp op = read_op(row);
      op.name = "memset";
      op.kind = OpKind::kMemset;
      report_.timeline.ops.push_back(op);
    });
    columns[7] = {"graphId", false};
    tables_.each(kGraphs, std::span{columns}.first(8), [&](const SqliteRow& row) {
      GpuOp op = read_op(row);
      op.name =
          *report_.graph_names.insert(row.null(7) ? "CUDA graph" : fmt::format("CUDA graph {}", id(row, 7))).first;
      report_.timeline.ops.push_back(op);
    });
  }

  GpuOp read_op(const SqliteRow& row) {
    GpuOp op;
    op.duration = duration(row, 1);
    if (op.duration > 0 || time(row, 0) != 0) op.start = time(row, 0);
    add(row, durations_, op.duration, "durations");
    op.device = static_cast<std::uint16_t>(row.whole(2, 0, kMostDevice));
    op.stream = {id(row, 5), id(row, 4), row.whole(3, kLeastId, kMostInReport)};
    if (const NsysCall* const found = call(op.stream.process, id(row, 6))) op.launch = found->start;
    return op;
  }

  static void add(const SqliteRow& row, Total& total, std::int64_t value, const char* what) {
    try {
      total.add(value, what);
    } catch (const InputError& error) {
      row.refuse("{}", error.what());
    }
  }

  void read_memory() {
    report_.has_memory = tables_.has(kMemory);
    const std::array columns{SqliteColumn{"start"},
                             SqliteColumn{"deviceId"},
                             SqliteColumn{"address"},
                             SqliteColumn{"bytes"},
                             SqliteColumn{"memKind"},
                             SqliteColumn{"memoryOperationType"},
                             SqliteColumn{"contextId", false},
                             SqliteColumn{"globalPid", false},
                             SqliteColumn{"streamId", false},
                             SqliteColumn{"name", false}};
    tables_.each(kMemory, columns, [&](const SqliteRow& row) {
      const std::int64_t kind = row.whole(4, 0, kMostInReport);
      if (kind == kPageable || kind == kPinned || kind == kDeviceStatic || kind == kManagedStatic) return;
      GpuMemory event;
      event.event = row.whole(5, 0, 1) == 1 ? BlockEvent::kFree : BlockEvent::kAlloc;
      event.time = time(row, 0);
      event.address = row.whole(2, 0, kMostInReport);
      event.size = row.whole(3, 0, kMostInReport);
      add(row, sizes_, event.size, "sizes");
      event.device = static_cast<std::uint16_t>(row.whole(1, 0, kMostDevice));
      event.stream = {id(row, 7), id(row, 6), or_none(row.whole_or_null(8, kLeastId, kMostInReport))};
      event.name = row.text(9);
      report_.timeline.memory.push_back(std::move(event));
    });
  }

  void read_syncs() {
    const std::array<SqliteColumn, 7> columns{{{"streamId"},
                                               {"eventId"},
                                               {"contextId", false},
                                               {"globalPid", false},
                                               {"correlationId", false},
                                               {"eventSyncId", false},
                                               {"end"}}};
    const auto read = [&](const SqliteRow& row) {
      GpuSync sync;
      sync.stream = {id(row, 3), id(row, 2), or_none(row.whole(0, kLeastId, kMostInReport))};
      sync.event = or_none(row.whole(1, kLeastId, kMostInReport));
      sync.sync_id = id(row, 5);
      return sync;
    };
    tables_.each(kEvents, std::span{columns}.first(6), [&](const SqliteRow& row) {
      GpuSync sync = read(row);
      const NsysCall* const made_by = call(sync.stream.process, id(row, 4));
      if (made_by == nullptr) return;  // the time of the event is not known
      sync.records = true;
      sync.time = made_by->start;
      report_.timeline.syncs.push_back(sync);
    });
    tables_.each(kSyncs, columns, [&](const SqliteRow& row) {
      GpuSync sync = read(row);
      const NsysCall* const made_by = call(sync.stream.process, id(row, 4));
      if (made_by != nullptr && made_by->result != 0) return;  // a query whose answer was "not yet"
      sync.time = time(row, 6);
      report_.timeline.syncs.push_back(sync);
    });
  }

  void read_ranges() {
    const std::array columns{SqliteColumn{"start"}, SqliteColumn{"end", false}, SqliteColumn{"eventType"},
                             SqliteColumn{"text", false}, SqliteColumn{"textId", false}};
    const std::set<std::int64_t> ranges{59, 60, 70, 71};  // push-pop, start-end, and their extended forms
    tables_.each("NVTX_EVENTS", columns, [&](const SqliteRow& row) {
      if (!ranges.contains(row.whole(2, kLeastId, kMostInReport))) return;
      GpuRange range;
      range.start = time(row, 0);
      if (!row.null(1)) range.end = range.start + duration(row, 1);
      range.name = !row.null(3) || row.null(4) ? row.text(3) : string(row, 4, "textId");
      if (!range.name.empty()) report_.timeline.ranges.push_back(std::move(range));
    });
  }

  void read_names() {
    const std::array pair{SqliteColumn{"name"}, SqliteColumn{"value"}};
    for (const char* table : {"EXPORT_META_DATA", "META_DATA_EXPORT"})
      tables_.each(table, pair, [&](const SqliteRow& row) {
        if (row.text(0) == "EXPORT_PRODUCT_VERSION") report_.version = row.text(1);
      });
    std::set<std::string> gpus;
    tables_.each("TARGET_INFO_GPU", std::array{SqliteColumn{"name", false}},
                 [&](const SqliteRow& row) { gpus.insert(row.text(0)); });
    if (gpus.size() == 1) report_.gpu = *gpus.begin();
  }

  const Input& input_;
  SqliteTables tables_;
  NsysReport report_;
  std::map<std::int64_t, std::unordered_map<std::int64_t, NsysCall>> calls_;  // by process, correlation
  Total durations_, sizes_;
};

/// Reads the tables CUPTI_ACTIVITY_KIND_X (X is KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, RUNTIME, SYNCHRONIZATION and
/// CUDA_EVENT), CUDA_GPU_MEMORY_USAGE_EVENTS, NVTX_EVENTS and StringIds, the GPU's name from TARGET_INFO_GPU and the
/// version from EXPORT_META_DATA or META_DATA_EXPORT. Other tables are not read: they hold environment variables and
/// paths.
/// @throws InputError  "x.sqlite: T: row 5: what we saw; what we expected"
NsysReport parse_nsys_report(const Input& input) { return Parser{input}.run(); }

constexpr const char* kLacksMemory =
    "memory events: this is a timeline only; record them with nsys profile --cuda-memory-usage=true";

Trace read(const Input& input, std::optional<std::size_t> device) {
  const NsysReport report = parse_nsys_report(input);
  try {
    TraceBuilder builder = build_trace(report.timeline, device);
    builder.meta()["source"] = "nsys";
    builder.meta()["time"] = "measured";
    if (!report.version.empty()) builder.meta()["capture"] = "Nsight Systems " + report.version;
    if (!report.gpu.empty()) builder.meta()["device"] = report.gpu;
    if (!report.has_memory) builder.meta()["lacks"] = kLacksMemory;
    return builder.finish();
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

/// The first page of a large file need not name any table; other databases are refused later, as they lack the tables.
int sniff_nsys(std::string_view head) {
  using namespace std::string_view_literals;
  if (!head.starts_with("SQLite format 3\0"sv)) return 0;
  return head.find("CUPTI_ACTIVITY_KIND") != std::string_view::npos ? 95 : 50;
}

const RegisterImporter kNsys{{"nsys",
                              "SQLite exports of Nsight Systems reports",
                              {".sqlite", ".sqlite3", ".db"},
                              sniff_nsys,
                              read_nsys,
                              read_nsys_device}};

}  // namespace

Trace read_nsys(const Input& input) { return read(input, std::nullopt); }

Trace read_nsys_device(const Input& input, std::size_t device) { return read(input, device); }

}  // namespace tidepool
