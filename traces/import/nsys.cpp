// SQLite exports of Nsight Systems reports (nsys profile --trace=cuda,nvtx --cuda-memory-usage=true, then nsys export
// --type=sqlite). A report does not tell which buffers a kernel uses: the ops have no uses.
#include <optional>
#include <string_view>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/nsys_report.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

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
