// The raw file of this process. It may be closed while threads of the job are in callbacks that append to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tracer/raw/writer.hpp"

namespace tidepool::inject {

/// ns on CLOCK_MONOTONIC_RAW and CLOCK_REALTIME.
std::int64_t monotonic_raw();
std::int64_t realtime();
/// The Linux thread id.
std::uint32_t thread_id();
/// One line on stderr, "tidepool: ...", in one write.
void say(std::string_view message);

class Output {
 public:
  /// Creates PID.cupti.raw in the folder (PID.2.cupti.raw after an exec of the same process). Makes the folder if
  /// needed, but not those above it.
  /// @param time  now, on CUPTI's clock
  /// @return 0 or errno
  int open(const std::string& folder, std::int64_t time);
  /// Ends the file; later records are left out. Waits at most `most_ms` for threads that are appending, and then at
  /// most as long for the disk. If a thread does not leave in time, the file stays unfinished.
  void close(std::uint32_t most_ms);
  /// In the child of a fork: leaves the file to the parent.
  void abandon() { open_ = false; }

  template <class Record>
  void append(const Record& record) {
    if (enter()) writer_.append(record);
    leave();
  }
  template <class Record>
  void append(const Record& record, std::span<const raw::BufferUse> uses) {
    if (enter()) writer_.append(record, uses);
    leave();
  }
  raw::Text text(std::string_view value) {
    const raw::Text text = enter() ? writer_.text(value) : raw::Text::kEmpty;
    leave();
    return text;
  }
  void info(std::string_view key, std::string_view value) { append(raw::Info{text(key), text(value)}); }
  const std::string& path() const { return path_; }
  bool is_open() const { return open_; }

 private:
  bool enter() {
    ++inside_;
    return open_;
  }
  void leave() { --inside_; }

  raw::Writer writer_;
  std::string path_;
  std::atomic<bool> open_{false};
  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace tidepool::inject
