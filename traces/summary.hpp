// Summary of a trace in numbers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

struct Summary {
  std::size_t buffers = 0, versions = 0, views = 0, ops = 0, uses = 0, steps = 0;
  std::size_t kernels = 0, copies = 0, random_ops = 0;
  std::size_t streams = 0, devices = 0;
  std::size_t iterations = 0;  ///< complete ones that the trace marks; 1 if it marks none
  Bytes ideal_peak;
  Nanos duration;                         ///< sum of the ops' durations
  Nanos span;                             ///< from the first start to the last end, with the host's time in between; 0
                                          ///< where some op has no start
  std::array<Bytes, 7> bytes_of_kind{};   ///< sum of the sizes of all buffers of a kind, by BufferKind
  std::array<std::size_t, 6> evidence{};  ///< uses by Evidence

  /// Number of buffers, versions, ops, uses and steps. Reading speeds are given in records per second.
  std::size_t records() const { return buffers + versions + ops + uses + steps; }
};

/// Whether the ops' times are those of the CPU that recorded them; compared with these, copies to the host look cheap.
bool has_cpu_times(const Trace& trace);
inline constexpr const char* kCpuTimes =
    "op times are those of the CPU that recorded them, so copies over a GPU's link look free in comparison; "
    "`tidepool record --torch --times a100-40gb` estimates op times for a GPU";

Summary summarize(const Trace& trace);

/// What a user should know about a trace: what it lacks or lost, as in "2 frees of memory whose allocation was not
/// seen", and whether its op times are a CPU's. Empty if there is nothing to say.
std::vector<std::string> warnings(const Trace& trace);

}  // namespace tidepool
