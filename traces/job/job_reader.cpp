#include "traces/job/job_reader.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

std::vector<JobReader>& job_readers() {
  static std::vector<JobReader> readers;
  return readers;
}

}  // namespace

RegisterJobReader::RegisterJobReader(JobReader reader) { job_readers().push_back(std::move(reader)); }

std::optional<ReadJob> read_recorded_job(const std::string& path, const std::string& format) {
  if (std::error_code error; !std::filesystem::is_directory(path, error)) return {};
  const std::string name = find_folder_importer(path, format).name;
  for (const JobReader& reader : job_readers())
    if (reader.format == name) return reader.read(path);
  return {};
}

}  // namespace tidepool
