// Writing a raw capture file from inside the process that is recorded: cheap for its threads, harmless when the disk
// fails, readable up to the last chunk when the process is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tracer/raw/records.hpp"

namespace tidepool::raw {

/// Packs a chunk: at most `capacity` bytes to `to`. @return how many, 0 = it did not get smaller.
using Pack = std::size_t (*)(void* to, std::size_t capacity, const void* from, std::size_t bytes);

struct WriterOptions {
  std::size_t chunk_bytes = std::size_t{1} << 20;
  std::size_t chunks = 8;              ///< buffers; while all of them wait for the disk, records are lost and counted
  std::uint32_t flush_after_ms = 200;  ///< what was appended is on its way to the disk after this time at the latest
  Pack pack = nullptr;                 ///< with Packing::kZstd; nullptr = plain
  /// Called once, on the writer's thread, when the disk refuses: with errno. The job goes on, without recording.
  void (*on_failure)(int error) = nullptr;
};

/// One file, any number of threads. append() copies a record into a buffer that was touched before; one background
/// thread, with all signals blocked, writes full buffers. No function throws.
class Writer {
 public:
  Writer() = default;
  /// Closes.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Creates the file, which must not exist yet, and starts the thread.
  /// @param header  `realtime` and `monotonic_raw` are read here, at the moment that header.time stands for
  /// @return 0 or errno
  int open(const char* path, FileHeader header, const WriterOptions& options = {}) noexcept;

  /// @return whether the record was kept; what was not is counted in the header of the file
  template <class Record>
  bool append(const Record& record) noexcept {
    static_assert(kPlainRecord<Record>);
    return append(Record::kKind, &record, sizeof record, nullptr, 0);
  }
  /// A Launch or a FrameworkOp; its `uses` is set here.
  template <class Record>
  bool append(Record record, std::span<const BufferUse> uses) noexcept {
    static_assert(kPlainRecord<Record>);
    record.uses = static_cast<std::uint32_t>(uses.size());
    return append(Record::kKind, &record, sizeof record, uses.data(), uses.size_bytes());
  }

  /// The number of a text; equal texts have one. kEmpty if there is no room for it.
  Text text(std::string_view value) noexcept;

  /// Waits until all that was appended before is written, at most so long. @return whether it is.
  bool flush(std::uint32_t most_ms = 5000) noexcept;
  /// Writes the rest and ends the file, in at most so long: if the disk does not answer, thread and buffers are left
  /// behind. @return whether the file is complete.
  bool close(std::uint32_t most_ms = 5000) noexcept;
  /// In the child of a fork, where the writing thread is not: forgets the file, which stays the parent's. open() may
  /// follow.
  void abandon() noexcept;

  bool is_open() const noexcept { return state_ != nullptr; }
  /// Records that were not kept up to now.
  std::uint64_t lost() const noexcept;

 private:
  struct State;
  bool append(Kind kind, const void* record, std::size_t size, const void* tail, std::size_t tail_size) noexcept;

  State* state_ = nullptr;
};

}  // namespace tidepool::raw
