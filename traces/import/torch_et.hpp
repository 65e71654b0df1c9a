// Records of PyTorch's ExecutionTraceObserver (also Chakra's input), typed: operators, tensors and schemas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/import/kineto.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A tensor among the arguments or results of an operator.
struct EtTensor {
  std::uint32_t argument = 0;  ///< position among the operator's arguments or results
  std::int64_t storage = 0;    ///< later storages at the same address have the same number
  std::int64_t device = -1;    ///< -1 = the host
  std::int64_t bytes = 0;      ///< of its elements
  std::int64_t end = 0;        ///< bytes of the storage up to the end of its last element
};

/// A call of an operator, or another range of the host. Calls inside it name it as their parent.
struct EtNode {
  std::int64_t id = 0;  ///< ascends in the order in which calls began
  std::int64_t parent = 0;
  std::int64_t record_function = -1;  ///< the number that the profiler gives the call; -1 = not recorded
  std::int64_t sequence = -1;         ///< at least 0 if autograd recorded the call
  std::int64_t thread = 0;
  std::uint32_t name = 0;    ///< index into ExecutionTrace::texts
  std::uint32_t schema = 0;  ///< index of "aten::relu_(Tensor(a!) self) -> Tensor(a!)", say; of "": it has none
  bool generated = false;    ///< a kernel of a compiler, as of Triton
  std::vector<EtTensor> inputs, outputs;
};

struct ExecutionTrace {
  std::vector<std::string> texts;
  std::vector<EtNode> nodes;  ///< in the order of their ids
};

/// Reads an execution trace, schema 1.0.1 to 1.1.1.
/// @throws InputError  "et.json:node 12: no \"id\"; expected a whole number", nodes counted from 0
ExecutionTrace parse_execution_trace(const Input& input);

/// Ops are the innermost operators, which do the work; storages are buffers, and views count as their storages. Frees
/// are not recorded: a buffer ends after the last operator that has it as an argument or a result. A buffer from before
/// the recording outlives it, unless a later buffer takes its address.
/// @param profile  of the same run, for durations and streams; without one, durations are 0
/// @throws InputError  "no device 2; the file has 0, 1", or that the profile is of another run
Trace to_trace(const ExecutionTrace& file, const Kineto* profile = nullptr, std::optional<std::int64_t> only = {});

}  // namespace tidepool
