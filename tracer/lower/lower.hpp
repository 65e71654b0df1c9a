// From the raw records of a capture to a trace: a pure function, so that captures can be read again by a later version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/raw/log.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Ops of a trace that is made of a capture.
enum class LoweredOps {
  kKernels,    ///< kernels, copies and memsets; operators where nothing recorded what they launched
  kOperators,  ///< the framework's innermost operators, each as long as its kernels, copies and memsets together
  /// The operators of the complete iterations that the framework's hook recorded, and nothing before and behind them;
  /// kernels where it recorded none, or where it does not know of most of their kernels.
  kIterations,
};

/// Joins the files of a capture by clock, launch and address: kernels, copies and memsets with what they use, buffers,
/// orders between streams, ranges, and what was lost. See tracer/lower/README.md.
/// @param device  only what is on this device, if it is given
/// @throws InputError  "no device 3; the capture has 0, 1"; and what the files' records cause
Trace lower(std::span<const raw::Log> logs, std::optional<std::size_t> device = {},
            LoweredOps ops = LoweredOps::kKernels);

/// A collective of one rank, or its part of a message between two ranks.
struct RankCollective {
  OpId op = {};
  std::string name;                 ///< all_reduce, send, ...
  std::uint64_t communicator = 0;   ///< its id, the same on all its ranks
  std::uint64_t sequence = 0;       ///< as raw::Collective has it
  Bytes input = {};                 ///< of this rank; of a message, its size
  std::optional<std::size_t> peer;  ///< of a message, the other rank of the communicator
};

struct LoweredRank {
  Trace trace;
  Nanos begin;  ///< the trace's time 0, on the common clock
  std::vector<RankCollective> collectives;
};

/// The files of one rank of a job.
LoweredRank lower_rank(std::span<const raw::Log> logs, LoweredOps ops);

/// The complete iterations [first, first + count) of a rank's trace. @throws InputError  as iterations()
LoweredRank iterations(LoweredRank rank, std::size_t first, std::size_t count);

}  // namespace tidepool
