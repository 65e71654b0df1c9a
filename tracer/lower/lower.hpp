// Conversion of a capture's raw records to a trace. It is a pure function, so later versions can convert old captures
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/raw/log.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The kind of ops in a trace that is made from a capture.
enum class LoweredOps {
  kKernels,  ///< kernels, copies and memsets; innermost operators if none of these was recorded
  /// The framework's innermost operators, whose times are the sums over their launches, or estimates; and what none
  /// of them launched, such as the kernels of a compiler or of a CUDA graph.
  kOperators,
  /// As kOperators, of the complete iterations that the framework's hook recorded, and nothing outside of these.
  /// Kernels if it recorded no complete iteration. All innermost operators if no launched work was recorded.
  kIterations,
};

/// Joins the files of a capture by clock, launch and address: kernels, copies and memsets with their uses, buffers,
/// orders between streams, ranges, and losses. See tracer/lower/README.md.
/// @param device  if given, only records of this device
/// @throws InputError  "no device 3; the capture has 0, 1"; also for invalid records
Trace lower(std::span<const raw::Log> logs, std::optional<std::size_t> device = {},
            LoweredOps ops = LoweredOps::kKernels);

/// A collective of one rank, or its part of a message between two ranks.
struct RankCollective {
  OpId op = {};
  std::string name;                 ///< all_reduce, send, ...
  std::uint64_t communicator = 0;   ///< its id, the same on all its ranks
  std::uint64_t sequence = 0;       ///< as raw::Collective has it
  Bytes input = {};                 ///< of this rank, or the size of a message
  std::optional<std::size_t> peer;  ///< of a message: the other rank in the communicator
};

struct LoweredRank {
  Trace trace;
  Nanos begin;  ///< the trace's time 0, on the common clock; 0 if it has no ops
  std::vector<RankCollective> collectives;
};

/// As lower(), for the files of one rank of a job.
LoweredRank lower_rank(std::span<const raw::Log> logs, LoweredOps ops);

/// The complete iterations [first, first + count) of a rank's trace. @throws InputError  as iterations() of a
/// trace
LoweredRank iterations(LoweredRank rank, std::size_t first, std::size_t count);

/// "at::native::reduce_kernel" for "_ZN2at6native13reduce_kernelILi512EfEEvPf": the qualified name, without template
/// arguments and parameters. The result is less than twice as long as the input, while a full demangler may make
/// gigabytes of a short name. A name that is not mangled, or that cannot be read, is returned unchanged.
std::string kernel_name(std::string_view mangled);

}  // namespace tidepool
