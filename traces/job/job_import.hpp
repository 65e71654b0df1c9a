// A job from the profiles of its ranks, or from a folder with their recordings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/kineto.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// A profile of one rank.
struct RankProfile {
  std::string file;  ///< for messages
  Kineto kineto;
  std::optional<KinetoOperands> operands = {};  ///< the buffers that its activities use
  std::optional<std::int64_t> number = {};      ///< the first number in the file's name
};

/// Whether a path is a folder or a tar archive (compressed or not), which may hold the profiles of several ranks.
bool holds_several_files(const std::string& path);

/// Whether a folder or a tar archive holds a Kineto file; false if it cannot be read.
bool holds_profiles(const std::string& path);

/// Reads every Kineto file of a folder (without its subfolders) or of a tar archive. Files in other forms are left out.
/// @throws InputError  "runs: no Kineto file; expected one for each rank"
std::vector<RankProfile> read_rank_profiles(const std::string& path);

/// Sorts the profiles by rank, and adds the buffers of each rank from its execution trace, one for each rank in a
/// folder or a tar archive. The first number in the file's name is the number of the rank.
/// @param path  where the profiles are, for messages
/// @param with  where the execution traces are
/// @throws InputError  as join_ranks(), about the numbers of the ranks
/// @throws InputError  "traces: 7 execution traces; expected 8, one for each rank"
/// @throws InputError  "traces/et_9.json: an execution trace of rank 9; expected one of each rank, 0 to 7"
/// @throws InputError  as find_operands()
void add_operands(const std::string& path, std::vector<RankProfile>& profiles, const std::string& with);

/// Joins the profiles of all ranks of a job. The number of a rank is in its profile; if any profile has none, the first
/// numbers in the files' names are used for all. The n-th collective of a group is the same one on all its ranks.
/// The clocks of the ranks must agree; Job::clock_residual says how well they do.
/// @return  the caller sets the traces' paths and hashes
/// @throws InputError  "runs: ranks 0, 2; expected 0 to 1, each once"
/// @throws InputError  "runs: 7 of 8 ranks; expected all, the \"world_size\" of a.json"
/// @throws InputError  "b.json: 7 collectives of group 'all'; expected 8, as in a.json"
/// @throws InputError  "b.json: collective 4 of group 'all' is all_to_all; expected all_reduce, as in a.json"
LoadedJob join_ranks(const std::string& path, std::vector<RankProfile> profiles);

struct ReadJob {
  LoadedJob job;                   ///< the caller sets the traces' paths and hashes
  std::vector<std::string> notes;  ///< a line each, about what the job lacks
};

/// A reader of folders with the recordings of all ranks of a job.
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
