#include "tracer/inject/output.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace tidepool::inject {
namespace {

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void report_failure(int error) {
  say(std::string{"the disk refuses what is recorded ("} + std::strerror(error) +
      "); the job goes on, and the raw file has what was written before");
}

}  // namespace

std::int64_t monotonic_raw() { return now(CLOCK_MONOTONIC_RAW); }
std::int64_t realtime() { return now(CLOCK_REALTIME); }

std::uint32_t thread_id() {
  thread_local const auto id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return id;
}

void say(std::string_view message) {
  const std::string line = "tidepool: " + std::string{message} + "\n";
  [[maybe_unused]] const ssize_t done = ::write(STDERR_FILENO, line.data(), line.size());
}

int Output::open(const std::string& folder, std::int64_t time) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  raw::FileHeader header;
  header.process = static_cast<std::uint32_t>(getpid());
  header.source = raw::Source::kCupti;
  header.clock = raw::Clock::kCupti;
  header.time = time;
  raw::WriterOptions options;
  options.on_failure = report_failure;
  int error = EEXIST;
  for (int part = 1; error == EEXIST && part < 1000; ++part) {
    path_ =
        folder + "/" + std::to_string(header.process) + (part == 1 ? "" : "." + std::to_string(part)) + ".cupti.raw";
    error = writer_.open(path_.c_str(), header, options);
  }
  open_ = error == 0;
  return error;
}

void Output::close(std::uint32_t most_ms) {
  if (!open_.exchange(false)) return;
  // Waits, up to the limit, for callbacks that are appending. If one hangs, the writer stays open for it.
  for (std::uint32_t waited = 0; inside_ != 0; ++waited) {
    if (waited == most_ms) return;
    usleep(1000);
  }
  writer_.close(most_ms);
}

}  // namespace tidepool::inject
