#include "traces/base/folder.hpp"

#include <algorithm>
#include <boost/filesystem/directory.hpp>
#include <boost/filesystem/operations.hpp>

#include "traces/base/refuse.hpp"

namespace tidepool {

std::vector<std::string> files_in(const std::string& folder, std::error_code& error) {
  // Not std::filesystem: libstdc++ 12 ends the program if memory runs out while a directory is read.
  namespace fs = boost::filesystem;
  std::vector<std::string> files;
  boost::system::error_code failure;
  for (fs::directory_iterator entry{folder, failure}, end; !failure && entry != end; entry.increment(failure))
    if (boost::system::error_code unknown; fs::is_regular_file(entry->status(unknown)))
      files.push_back(entry->path().string());
  error = failure;
  if (error) return {};
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files = files_in(folder, error);
  if (error) refuse("{}: cannot be read: {}", folder, error.message());
  return files;
}

}  // namespace tidepool
