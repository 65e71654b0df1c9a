// Checks of the files that a command will write.
#pragma once

#include <string>

namespace tidepool {

/// Refuses a path that write_file() could not write, before a command begins its work. Nothing is made or changed.
/// @param path  "" is no file, and is not refused
/// @throws InputError  "no/a.plan: cannot be written: No such file or directory"
/// @throws InputError  "runs: is a directory; expected a file"
/// @throws InputError  for "-", which some programs take for the standard output
void require_writable(const std::string& path);

}  // namespace tidepool
