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
Trace read_dtr(const Input& input);
/// Reads G10's three tables.
Trace read_g10(const Input& kernels, const Input& tensors, const Input& times);
Trace read_kineto(const Input& input);
Trace read_kineto_device(const Input& input, std::size_t device);
/// Reads an SQLite export; messages are like "x.sqlite: table: row 5: ...".
Trace read_nsys(const Input& input);
Trace read_nsys_device(const Input& input, std::size_t device);
Trace read_rmm(const Input& input);
Trace read_singa(const Input& input);
Trace read_interval_csv(const Input& input);
Trace read_torch_et(const Input& input);
Trace read_torch_et_with(const Input& input, const Input& profile, std::optional<std::size_t> device);
Trace read_torch_snapshot(const Input& input);
Trace read_torch_snapshot_device(const Input& input, std::size_t device);

}  // namespace tidepool
