// GPU records of an exported Nsight Systems report, not yet in any order.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "traces/base/input.hpp"
#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// The host call that a record comes from, found by the correlation id.
struct NsysCall {
  std::int64_t start = 0;   ///< ns
  std::int64_t result = 0;  ///< what the call returned; 0 = success
};

struct NsysReport {
  std::unordered_map<std::int64_t, std::string> strings;  ///< by id; `timeline` refers to these texts
  std::set<std::string> graph_names;                      ///< and to these
  GpuTimeline timeline;
  bool has_memory = false;  ///< memory was recorded
  std::string version;      ///< of the exporting program, "" if not recorded
  std::string gpu;          ///< name of the GPU, "" if not recorded or if there are different ones
};

/// Reads the tables CUPTI_ACTIVITY_KIND_X (X is KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, RUNTIME, SYNCHRONIZATION and
/// CUDA_EVENT), CUDA_GPU_MEMORY_USAGE_EVENTS, NVTX_EVENTS and StringIds, the GPU's name from TARGET_INFO_GPU and the
/// version from EXPORT_META_DATA or META_DATA_EXPORT. Other tables are not read: they hold environment variables and
/// paths.
/// @throws InputError  "x.sqlite: T: row 5: what we saw; what we expected"
NsysReport parse_nsys_report(const Input& input);

}  // namespace tidepool
