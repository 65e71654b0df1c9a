// Calls of an execution trace that launched the activities of a profile of the same run.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "traces/import/kineto.hpp"
#include "traces/import/torch_et.hpp"
#include "traces/import/torch_et_program.hpp"

namespace tidepool {

/// For each activity, the op that launched it, as an index into ExecutionTrace::nodes; EtProgram::kNone = none. Profile
/// and execution trace usually have the same number for a call. If not, a thread of the profile is matched with the
/// thread of the execution trace that calls operators of the same names in the same order.
/// @throws InputError  "79 of 1633 operators of the profile have a number and a name of the execution trace; expected a
///                     profile of the same run"
std::vector<std::size_t> nodes_of_activities(const ExecutionTrace& file, const EtProgram& program,
                                             const Kineto& profile);

/// The storages of an execution trace, the calls that use them, and for each activity of a profile the call that
/// launched it.
KinetoOperands find_operands(const ExecutionTrace& file, const Kineto& profile);

}  // namespace tidepool
