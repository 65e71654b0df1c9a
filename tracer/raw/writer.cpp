#include "tracer/raw/writer.hpp"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tracer/raw/own_file.hpp"

namespace tidepool::raw {
namespace {

struct Chunk {
  std::unique_ptr<char[]> bytes;
  std::size_t used = 0;
  std::uint32_t records = 0;
};

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

/// All state of the writer in one object, which the child of a fork leaves unchanged.
struct Writer::State {
  std::mutex mutex;
  std::condition_variable work;  // for the writing thread
  std::condition_variable idle;  // for threads that wait for the writing thread
  std::thread thread;
  WriterOptions options;
  OwnFile file;

  // Guarded by the mutex.
  std::vector<Chunk> chunks;
  std::vector<Chunk*> free;
  std::deque<Chunk*> full;
  Chunk* current = nullptr;
  bool writing = false, stopping = false, stopped = false, left_behind = false, failed = false;
  std::uint64_t lost = 0;
  std::unordered_map<std::string, Text> texts;

  // Used by the writing thread only.
  std::unique_ptr<char[]> packed;
  off_t written = 0;

  /// Room for a record in the current chunk, or in a fresh one. nullptr if all buffers are full, or if the record is
  /// larger than a chunk.
  char* room(std::size_t bytes) {
    if (current != nullptr && current->used + bytes > options.chunk_bytes) hand_over();
    if (current == nullptr) {
      if (free.empty() || bytes > options.chunk_bytes) return nullptr;
      current = free.back();
      free.pop_back();
    }
    return current->bytes.get() + current->used;
  }

  void hand_over() {
    if (current == nullptr || current->used == 0) return;
    full.push_back(current);
    current = nullptr;
    work.notify_one();
  }

  bool put(Kind kind, const void* record, std::size_t size, const void* tail, std::size_t tail_size) {
    const std::size_t bytes = sizeof(Head) + size + (tail_size + 7) / 8 * 8;
    char* const to = failed ? nullptr : room(bytes);
    if (to == nullptr) {
      ++lost;
      return false;
    }
    const Head head{kind, static_cast<std::uint16_t>(size), static_cast<std::uint32_t>(bytes)};
    std::memcpy(to, &head, sizeof head);
    std::memcpy(to + sizeof head, record, size);
    if (tail_size > 0) {
      std::memset(to + bytes - 8, 0, 8);
      std::memcpy(to + sizeof head + size, tail, tail_size);
    }
    current->used += bytes;
    ++current->records;
    return true;
  }

  int write_chunk(const Chunk& chunk) {
    ChunkHeader header;
    header.bytes = static_cast<std::uint32_t>(chunk.used);
    header.stored = header.bytes;
    header.records = chunk.records;
    const char* stored = chunk.bytes.get();
    if (packed) {
      if (const std::size_t size = options.pack(packed.get(), chunk.used, stored, chunk.used)) {
        header.stored = static_cast<std::uint32_t>(size);
        header.packing = Packing::kZstd;
        stored = packed.get();
      }
    }
    header.checksum = XXH3_64bits(stored, header.stored);
    header.header_checksum = static_cast<std::uint32_t>(XXH3_64bits(&header, sizeof header - 4));
    return file.change([&](int to) {
      int error = write_all(to, &header, sizeof header);
      if (error == 0) error = write_all(to, stored, header.stored);
      if (error == 0)
        written += static_cast<off_t>(sizeof header + header.stored);
      else
        static_cast<void>(::ftruncate(to, written) + 0);  // removes the incomplete chunk
      return error;
    });
  }

  /// Overwrites the counts in the header, which works on a full disk too.
  void write_counts(bool closed) {
    const std::uint64_t counts[2] = {lost, closed ? 1u : 0u};
    file.overwrite(counts, sizeof counts, offsetof(FileHeader, lost_records));
  }

  void run() {
    std::unique_lock lock{mutex};
    std::uint64_t said = 0;
    while (true) {
      if (full.empty() && !stopping) {
        work.wait_for(lock, std::chrono::milliseconds{options.flush_after_ms},
                      [this] { return !full.empty() || stopping; });
        if (full.empty()) hand_over();
      }
      if (full.empty() && stopping) hand_over();
      if (full.empty()) {
        if (lost != said) write_counts(false), said = lost;
        idle.notify_all();
        if (stopping) break;
        continue;
      }
      Chunk* const chunk = full.front();
      full.pop_front();
      writing = true;
      lock.unlock();
      const int error = failed ? EIO : write_chunk(*chunk);
      lock.lock();
      writing = false;
      if (error != 0) {
        lost += chunk->records;
        if (!failed && options.on_failure != nullptr) {
          lock.unlock();
          options.on_failure(error);
          lock.lock();
        }
        failed = true;
      }
      chunk->used = 0;
      chunk->records = 0;
      free.push_back(chunk);
      if (full.empty()) idle.notify_all();
    }
    write_counts(true);
    stopped = true;
    idle.notify_all();
    const bool ours = left_behind;
    lock.unlock();
    if (ours) delete this;
  }
};

Writer::~Writer() { close(); }

int Writer::open(const char* path, FileHeader header, const WriterOptions& options) noexcept {
  if (state_ != nullptr) return EBUSY;
  int error = 0;
  try {
    auto state = std::make_unique<State>();
    state->options = options;
    state->chunks.resize(options.chunks);
    for (Chunk& chunk : state->chunks) {
      chunk.bytes.reset(new char[options.chunk_bytes]);
      std::memset(chunk.bytes.get(), 0, options.chunk_bytes);  // touches the pages now, not during a launch
      state->free.push_back(&chunk);
    }
    if (options.pack != nullptr) state->packed.reset(new char[options.chunk_bytes]);
    if (error = state->file.create(path); error != 0) return error;
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.realtime = now(CLOCK_REALTIME);
    header.monotonic_raw = now(CLOCK_MONOTONIC_RAW);
    error = state->file.change([&](int to) { return write_all(to, &header, sizeof header); });
    state->written = sizeof header;
    if (error == 0) {
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);  // the job's threads handle the job's signals
      try {
        state->thread = std::thread{[running = state.get()] { running->run(); }};
      } catch (...) {
        error = EAGAIN;
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    if (error == 0)
      state_ = state.release();
    else
      ::unlink(path);
  } catch (...) {
    error = ENOMEM;
  }
  return error;
}

bool Writer::append(Kind kind, const void* record, std::size_t size, const void* tail, std::size_t tail_size) noexcept {
  if (state_ == nullptr) return false;
  try {
    const std::lock_guard lock{state_->mutex};
    return state_->put(kind, record, size, tail, tail_size);
  } catch (...) {
    return false;
  }
}

Text Writer::text(std::string_view value) noexcept {
  if (state_ == nullptr || value.empty()) return Text::kEmpty;
  constexpr std::size_t kMostText = 1 << 15;  // bytes; long enough for mangled names
  value = value.substr(0, kMostText);
  try {
    const std::lock_guard lock{state_->mutex};
    const Text next{static_cast<std::uint32_t>(state_->texts.size() + 1)};
    const auto [entry, added] = state_->texts.try_emplace(std::string{value}, next);
    if (!added) return entry->second;
    const String record{next, static_cast<std::uint32_t>(value.size())};
    if (state_->put(Kind::kString, &record, sizeof record, value.data(), value.size())) return next;
    state_->texts.erase(entry);
  } catch (...) {
  }
  return Text::kEmpty;
}

bool Writer::flush(std::uint32_t most_ms) noexcept {
  if (state_ == nullptr) return true;
  try {
    std::unique_lock lock{state_->mutex};
    state_->hand_over();
    return state_->idle.wait_for(lock, std::chrono::milliseconds{most_ms}, [this] {
      return state_->full.empty() && !state_->writing;
    }) && !state_->failed;
  } catch (...) {
    return false;
  }
}

bool Writer::close(std::uint32_t most_ms) noexcept {
  if (state_ == nullptr) return true;
  State* const state = state_;
  state_ = nullptr;
  try {
    std::unique_lock lock{state->mutex};
    state->stopping = true;
    state->work.notify_one();
    const bool done = state->idle.wait_for(lock, std::chrono::milliseconds{most_ms}, [&] { return state->stopped; });
    if (!done) {
      state->left_behind = true;
      state->thread.detach();
      return false;
    }
    lock.unlock();
    state->thread.join();
    const bool complete = !state->failed && state->lost == 0;
    delete state;
    return complete;
  } catch (...) {
    return false;
  }
}

void Writer::abandon() noexcept {
  state_ = nullptr;  // not released: its mutex may be locked, and its thread does not exist in the child
}

std::uint64_t Writer::lost() const noexcept {
  if (state_ == nullptr) return 0;
  try {
    const std::lock_guard lock{state_->mutex};
    return state_->lost;
  } catch (...) {
    return 0;
  }
}

}  // namespace tidepool::raw
