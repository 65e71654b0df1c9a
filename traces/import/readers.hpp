// The readers of other programs' formats, for tests; other code calls load_trace.
#pragma once

#include <cstddef>
#include <optional>

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

// All throw InputError: "file:line: what we saw; what we expected". For files that are not read by lines, a record is
// named instead of the line: "file:event 12: ...", "file: op 5: ...".

/// Graphs of published recomputation problems, see recompute_graph.hpp.
Trace read_checkmate(const Input& input);
Trace read_moccasin(const Input& input);
Trace read_chakra(const Input& input);
Trace read_dtr(const Input& input);
/// Reads G10's three tables.
Trace read_g10(const Input& kernels, const Input& tensors, const Input& times);
/// The problems of the IOPDDL contest, see iopddl.cpp.
Trace read_iopddl(const Input& input);
Trace read_kineto(const Input& input);
Trace read_kineto_device(const Input& input, std::size_t device);
/// Reads an SQLite export; messages are like "x.sqlite: table: row 5: ...".
Trace read_nsys(const Input& input);
Trace read_nsys_device(const Input& input, std::size_t device);
Trace read_pprof(const Input& input);
Trace read_rmm(const Input& input);
Trace read_rocprofiler(const Input& input);
Trace read_rocprofiler_device(const Input& input, std::size_t device);
Trace read_singa(const Input& input);
Trace read_interval_csv(const Input& input);
/// The dump of TensorFlow's allocator when memory ran out.
Trace read_tf_oom(const Input& input);
Trace read_torch_et(const Input& input);
Trace read_torch_et_with(const Input& input, const Input& profile, std::optional<std::size_t> device);
Trace read_torch_snapshot(const Input& input);
Trace read_torch_snapshot_device(const Input& input, std::size_t device);
/// Reads XLA's buffer assignment; `ranges` has the live ranges, where the assignment lacks them.
Trace read_xla_buffers(const Input& input, const Input& ranges);
/// XLA's list of the largest buffers when memory ran out.
Trace read_xla_oom(const Input& input);
Trace read_xplane(const Input& input);
Trace read_xplane_device(const Input& input, std::size_t device);

}  // namespace tidepool
