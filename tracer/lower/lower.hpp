// From the raw records of a capture to a trace: a pure function, so that captures can be read again by a later version.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

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

}  // namespace tidepool
