// Records of one program from all its files: the common ground of the steps of assembly.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracer/lower/clock_fit.hpp"
#include "tracer/raw/log.hpp"
#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// A file with its clock.
struct FittedLog {
  explicit FittedLog(const raw::Log& file) : log{file}, clock{file} {}
  const raw::Log& log;
  ClockFit clock;
};

/// The host's call that launched something, by correlation id.
struct HostLaunch {
  std::int64_t time = 0;  ///< on the common clock
  std::uint32_t thread = 0;
  const raw::WithUses<raw::Launch>* launch = nullptr;  ///< with the uses, if the launch was looked at
  const raw::Log* log = nullptr;                       ///< that has them
};

/// One program that a process ran: one that calls exec becomes another, with other memory and other handles.
struct ProcessLog {
  std::uint32_t process = 0;
  std::uint32_t program = 0;           ///< of this process, from 0 on
  std::optional<std::int64_t> ends{};  ///< when the next program of the process was there, on the common clock
  std::vector<FittedLog> files;
  std::unordered_map<std::uint32_t, HostLaunch> launches;     ///< by correlation
  std::unordered_map<std::uint64_t, HostLaunch> graph_nodes;  ///< by node: what it uses each time
  std::unordered_map<std::uint64_t, GpuStream> streams;       ///< by the framework's handle

  ProcessLog(std::uint32_t id, std::uint32_t number) : process{id}, program{number} {}
  /// When all files are there.
  void index();

  GpuStream stream(std::uint32_t context, std::uint32_t stream) const;
  const HostLaunch* launch(std::uint32_t correlation) const;
};

/// One for each program of each process, processes in the order in which they first appear. A program writes one file
/// for each source, so a second one is the next program's; and so is a file that began after all of a program's ended
/// (their last clock reading, memory event, launch, kernel or op), if a second one of theirs follows.
std::vector<ProcessLog> by_process(std::span<const raw::Log> logs);

/// What no trace has: memory that is not known to be on the host may be on a device.
bool on_host(raw::MemoryKind kind);

/// Addresses and sizes of a trace are less than 2^63.
/// @throws InputError  "x.raw: address 18446744073709551615; expected less than 2^63"
std::int64_t checked(const raw::Log& log, const char* what, std::uint64_t value);

}  // namespace tidepool
