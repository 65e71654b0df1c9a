// What an exported Nsight Systems report says about the GPU: its records, not yet in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A stream of one context of one process.
struct NsysStream {
  std::int64_t process = 0;  ///< nsys's globalPid; 0 = not told
  std::int64_t context = 0;
  std::int64_t stream = 0;
  auto operator<=>(const NsysStream&) const = default;
};

/// The host call that a record comes from, by correlation id.
struct NsysCall {
  std::int64_t start = 0;  ///< ns
  std::int64_t result = 0;
};

/// A kernel, copy, memset, or a whole CUDA graph where its parts were not recorded. Times are ns on the clock of the
/// report.
struct NsysOp {
  OpKind kind = OpKind::kKernel;
  std::string_view name;  ///< lives as long as the report
  NsysStream stream;
  std::uint16_t device = 0;
  std::optional<std::int64_t> start;  ///< nothing where the profiler lost the time
  std::int64_t duration = 0;
  std::optional<std::int64_t> launch;
};

/// An allocation or a free of device memory.
struct NsysMemory {
  bool frees = false;
  std::int64_t time = 0;
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::uint16_t device = 0;
  NsysStream stream;  ///< stream -1 = of no stream
  std::string name;
};

/// An event that was recorded on a stream, or that is waited for. What waits is told by what is named, since the
/// numbers of the types differ between versions: a stream and an event: the stream waits; only one of both: the host
/// waits for it; neither: the host waits for the context.
struct NsysSync {
  bool records = false;
  std::int64_t time = 0;  ///< when the host recorded it, made a stream wait, or had waited
  NsysStream stream;      ///< stream -1 = none
  std::int64_t event = -1;
  std::int64_t sync_id = 0;  ///< joins a wait with one record of an event; 0 = not told
};

struct NsysRange {
  std::int64_t start = 0;
  std::optional<std::int64_t> end;  ///< nothing if it was open when the recording ended
  std::string name;
};

struct NsysReport {
  std::unordered_map<std::int64_t, std::string> strings;
  std::set<std::string> graph_names;
  std::vector<NsysOp> ops;
  std::vector<NsysMemory> memory;
  std::vector<NsysSync> syncs;
  std::vector<NsysRange> ranges;
  bool has_memory = false;  ///< memory was recorded at all
  std::string version;      ///< of the exporting program, "" if not told
  std::string gpu;          ///< name of the GPU, "" if not told or if there are different ones
};

/// Reads the tables KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, RUNTIME, SYNCHRONIZATION and CUDA_EVENT of
/// CUPTI_ACTIVITY_KIND_..., CUDA_GPU_MEMORY_USAGE_EVENTS, NVTX_EVENTS, StringIds, and the names of GPU and version.
/// Nothing else is looked at: other tables of a report hold environment variables and paths.
/// @throws InputError  "x.sqlite: T: row 5: what we saw; what we expected"
NsysReport parse_nsys_report(const Input& input);

}  // namespace tidepool
