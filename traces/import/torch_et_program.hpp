// Device program of an execution trace: its operators in order, and the lives of the storages they use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "traces/import/kineto.hpp"
#include "traces/import/torch_et.hpp"

namespace tidepool {

struct EtProgram {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// A storage from its allocation on. A later storage at the same address is another life.
  struct Life {
    std::int64_t device = 0;
    std::int64_t bytes = 0;  ///< up to the end of the furthest tensor in it
    bool born_before = false;
    std::size_t first = 0, last = 0;  ///< into `calls`; last kNone: born before, and its address was not reused
  };
  struct Use {
    std::size_t life = 0;
    Access access = Access::kRead;
    Evidence evidence = Evidence::kSchema;
    std::int64_t bytes = 0;  ///< of the call's largest tensor in it
  };
  struct Call {
    std::size_t node = 0;
    bool runs = false;  ///< it is an op; other calls only keep storages alive
    std::vector<Use> uses;
  };

  std::vector<Call> calls;           ///< in the order in which their work was issued
  std::vector<Life> lives;           ///< in the order of their first use
  std::vector<std::size_t> parents;  ///< by node: the node that called it, kNone = none
  std::vector<bool> runs;            ///< by node
};

/// Finds the device program. An operator with a tensor on the device is an op if it copies a number to the host, or if
/// it writes a storage that no operator inside it writes: then it launches kernels itself. Operators that only allocate
/// are no ops.
/// @param only  the one device to look at
EtProgram find_program(const ExecutionTrace& file, std::optional<std::int64_t> only);

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
