// Writing a raw capture file from inside the recorded process. It is fast for the process's threads, and a failing disk
// is no error for them. If the process is killed, the file is readable up to the last chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tracer/raw/records.hpp"

namespace tidepool::raw {

/// Packs a chunk into at most `capacity` bytes at `to`. @return their number; 0 = the chunk did not get smaller
using Pack = std::size_t (*)(void* to, std::size_t capacity, const void* from, std::size_t bytes);

struct WriterOptions {
  std::size_t chunk_bytes = std::size_t{1} << 20;  ///< of a buffer; a larger record is lost
  std::size_t chunks = 8;              ///< buffers; while all of them wait for the disk, records are lost and counted
  std::uint32_t flush_after_ms = 200;  ///< records begin to be written after this time at the latest
  Pack pack = nullptr;                 ///< packs chunks as Packing::kZstd; nullptr: chunks stay plain
  /// Called once, on the writer's thread, with errno, if a write fails. The job runs on without recording.
  void (*on_failure)(int error) = nullptr;
};

/// One file, written by any number of threads. append() copies a record into a buffer whose pages were touched before.
/// One background thread, with all signals blocked, writes each buffer when it is full, or after the options'
/// flush_after_ms. No function throws.
class Writer {
 public:
  Writer() = default;
  /// Calls close().
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Creates the file, which must not exist yet, and starts the thread.
  /// @param header  with `time` read just now; `realtime` and `monotonic_raw` are set here
  /// @return 0 or errno
  int open(const char* path, FileHeader header, const WriterOptions& options = {}) noexcept;

  /// @return whether the record was kept; lost records are counted in the header of the file
  template <class Record>
  bool append(const Record& record) noexcept {
    static_assert(kPlainRecord<Record>);
    return append(Record::kKind, &record, sizeof record, nullptr, 0);
  }
  /// For a Launch or a FrameworkOp; sets its `uses`.
  template <class Record>
  bool append(Record record, std::span<const BufferUse> uses) noexcept {
    static_assert(kPlainRecord<Record>);
    record.uses = static_cast<std::uint32_t>(uses.size());
    return append(Record::kKind, &record, sizeof record, uses.data(), uses.size_bytes());
  }

  /// The number of a text, of which the first 32 KiB are kept; equal texts have the same number. kEmpty for the empty
  /// text, and if the text is lost because all buffers are full or the disk failed.
  Text text(std::string_view value) noexcept;

  /// Waits until all records appended before are written, up to a time limit. @return whether they are written
  bool flush(std::uint32_t most_ms = 5000) noexcept;
  /// Writes the remaining records and ends the file, within a time limit. If a write does not end in time, the thread
  /// goes on alone and releases the buffers when it ends. @return whether the file is complete
  bool close(std::uint32_t most_ms = 5000) noexcept;
  /// Call in the child of a fork, which has no writing thread. The file stays with the parent; open() may follow.
  void abandon() noexcept;

  bool is_open() const noexcept { return state_ != nullptr; }
  /// The number of records lost so far.
  std::uint64_t lost() const noexcept;

 private:
  struct State;
  bool append(Kind kind, const void* record, std::size_t size, const void* tail, std::size_t tail_size) noexcept;

  State* state_ = nullptr;
};

}  // namespace tidepool::raw
