// All records of one program, joined from its files, and the clock that all files share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracer/raw/log.hpp"
#include "traces/import/gpu_timeline.hpp"

namespace tidepool {

/// Maps a file's clock to CLOCK_MONOTONIC_RAW, by straight lines between readings of both clocks. Before the first and
/// after the last reading, both clocks count as equally fast. In a file without readings, the header's times take the
/// place of one. Times of a file whose clock is CLOCK_MONOTONIC_RAW, or that has neither, stay the same.
class ClockFit {
 public:
  /// @param log  must outlive this object
  explicit ClockFit(const raw::Log& log);

  /// @throws InputError  "x.raw: time 4611686018427387904; expected -2^61 to 2^61"
  /// @throws InputError  "x.raw: time 7 is 4611686018427387904 on the common clock; expected -2^61 to 2^61"
  std::int64_t common(std::int64_t time) const;
  /// The largest distance, in ns, of a reading from the straight line between its neighbours.
  std::int64_t residual() const;

 private:
  struct Reading {
    std::int64_t time;
    std::int64_t common;
  };
  static std::int64_t between(const Reading& a, const Reading& b, std::int64_t time);

  const raw::Log& log_;
  std::vector<Reading> readings_;  // ascending in both
};

/// A file with its conversion to the common clock.
struct FittedLog {
  explicit FittedLog(const raw::Log& file) : log{file}, clock{file} {}
  const raw::Log& log;
  ClockFit clock;
};

/// The host's call that launched work, by correlation id.
struct HostLaunch {
  std::int64_t time = 0;  ///< on the common clock
  std::uint32_t thread = 0;
  const raw::WithUses<raw::Launch>* launch = nullptr;  ///< with its uses; null if only the call was recorded
  const raw::Log* log = nullptr;                       ///< the file with the uses; null if `launch` is
};

/// One run of a program in a process. A process that calls exec becomes another program, with other memory and handles.
struct ProcessLog {
  std::uint32_t process = 0;
  std::uint32_t program = 0;           ///< number of the program in its process, from 0
  std::optional<std::int64_t> ends{};  ///< begin of the process's next program, on the common clock
  std::vector<FittedLog> files;
  std::unordered_map<std::uint32_t, HostLaunch> launches;     ///< by correlation
  std::unordered_map<std::uint64_t, HostLaunch> graph_nodes;  ///< by node: its uses at each launch
  std::unordered_map<std::uint64_t, GpuStream> streams;       ///< by the framework's handle

  ProcessLog(std::uint32_t id, std::uint32_t number) : process{id}, program{number} {}
  /// Builds the indexes. Call it when all files are there.
  void index();

  GpuStream stream(std::uint32_t context, std::uint32_t stream) const;
  /// @return null if no call with this id was recorded, and for 0
  const HostLaunch* launch(std::uint32_t correlation) const;
};

/// One log for each program of each process; processes are in the order of their first files. A program writes one file
/// for each source, so a second file of a source belongs to the next program. So does a file that began after all of a
/// program's files ended (last clock reading, memory event, launch, kernel or op), if a second file of one of the
/// program's sources follows.
std::vector<ProcessLog> by_process(std::span<const raw::Log> logs);

/// Whether memory is certainly on the host, and so in no trace. Memory of an unknown kind may be on a device.
bool on_host(raw::MemoryKind kind);

/// Checks an address or a size, which must be less than 2^63 in a trace.
/// @throws InputError  "x.raw: address 18446744073709551615; expected less than 2^63"
std::int64_t checked(const raw::Log& log, const char* what, std::uint64_t value);

}  // namespace tidepool
