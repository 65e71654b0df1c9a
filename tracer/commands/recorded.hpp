// Outcome of a recording, read from its files before a trace is made from them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tidepool {

/// Contents of a folder RUN.raw after the job has ended.
struct Recorded {
  bool files = false;           ///< a process made a raw file, even one without a complete header
  bool hooked = false;          ///< PyTorch's hook was loaded into a process
  bool work = false;            ///< a kernel, a copy, a memset, an op or an allocation of PyTorch is recorded
  bool steps = false;           ///< the hook recorded ops of training steps
  bool several_ranks = false;   ///< the files are of a job of several ranks
  std::size_t trained = 0;      ///< processes in which the hook recorded ops of training steps
  std::size_t whole_steps = 0;  ///< complete iterations that the hook recorded, in the process with the most
  /// The files of each process in which the hook recorded ops, if there are several and each began after the one before
  /// had ended.
  std::vector<std::vector<std::string>> in_a_row;
  std::string said;  ///< the first exception that ended a Python of the job, as "ValueError: bad data"; "": none
};

/// Reads the folder; all members keep their defaults if it does not exist. A file without a complete header only sets
/// `files`.
/// @throws InputError  for a damaged file
Recorded look_at_recorded(const std::filesystem::path& raw);

}  // namespace tidepool
