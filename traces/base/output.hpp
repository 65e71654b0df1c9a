// Files that a command writes: checks of their names, and unfinished ones.
#pragma once

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

namespace tidepool {

/// Refuses a path that write_file() could not write, before a command begins its work. Nothing is made or changed.
/// @param path  "" is no file, and is not refused
/// @throws InputError  "no/a.plan: cannot be written: No such file or directory"
/// @throws InputError  "runs: is a directory; expected a file"
/// @throws InputError  for "-", which some programs take for the standard output
void require_writable(const std::string& path);

/// While an object lives, Ctrl-C and SIGTERM wait, so that no unfinished file stays. Of this thread: a program that
/// works in several threads has its own way to end.
class Unbroken {
 public:
  Unbroken();
  ~Unbroken();
  Unbroken(const Unbroken&) = delete;
  Unbroken& operator=(const Unbroken&) = delete;

 private:
  sigset_t before_ = {};
};

/// Creates a file with a new name beside `path`; null with errno if it cannot be. Nobody else can have made a file or a
/// link of this name, not even one that knows `path`.
std::FILE* create_beside(const std::string& path, std::string& name);

/// Writes a file with a new name beside `path`, to be renamed to it. @return  its name; @throws  as write_file()
std::string write_beside(const std::string& path, std::string_view bytes);

/// Writes all bytes and closes the file. @throws  as fail_unfinished()
void write_and_close(std::FILE* file, std::string_view bytes, const std::string& path, const std::string& unfinished);

/// Removes `unfinished` if it has a name. @throws std::runtime_error  "x.tide: cannot be written: " and errno
[[noreturn]] void fail_unfinished(const std::string& path, const std::string& unfinished);

}  // namespace tidepool
