// Readers of folders with the recordings of all ranks of a job register themselves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/job/job.hpp"

namespace tidepool {

struct ReadJob {
  LoadedJob job;                   ///< the caller sets the traces' paths and hashes
  std::vector<std::string> notes;  ///< a line each, about what the job lacks
};

struct JobReader {
  std::string format;  ///< the importer that reads such a folder if it has one rank
  /// @return  none if the folder has the recording of one rank, or of none
  /// @throws InputError  with the path in front
  std::function<std::optional<ReadJob>(const std::string& folder)> read;
};

/// A namespace-scope object of this type registers a reader.
struct RegisterJobReader {
  explicit RegisterJobReader(JobReader reader);
};

/// Reads a folder with the recordings of several ranks.
/// @param format  as for load_trace()
/// @return  none if `path` is no such folder
/// @throws InputError  as find_folder_importer() and JobReader::read
std::optional<ReadJob> read_recorded_job(const std::string& path, const std::string& format);

}  // namespace tidepool
