// The files of a folder.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace tidepool {

/// The paths of a folder's regular files, sorted; none if it cannot be read, with the reason in `error`.
std::vector<std::string> files_in(const std::string& folder, std::error_code& error);

/// The same. @throws InputError  "runs: cannot be read: Permission denied"
std::vector<std::string> files_in(const std::string& folder);

}  // namespace tidepool
