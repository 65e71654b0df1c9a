#include "tests/fake_cuda/activity_buffers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake.hpp"

namespace fake {
namespace {

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;

/// Running work. Its record is in a buffer, without times until finish() finds that the work has ended.
struct Unfinished {
  std::size_t times;  ///< place of the times in the buffer: begin, then end
  std::uint64_t begin, end;
};

/// A buffer; each thread fills its own.
struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t capacity = 0, used = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> records = {};  ///< kind and place of each record
  std::vector<Unfinished> unfinished = {};
};
std::map<std::thread::id, Buffer>& buffers() {
  static auto& all = *new std::map<std::thread::id, Buffer>;
  return all;
}

/// Full buffers with work that has not ended.
std::vector<Buffer>& waiting() {
  static auto& all = *new std::vector<Buffer>;
  return all;
}

/// The place of the begin time in a record; the end time follows it. 0 for kinds whose records are complete at once.
std::size_t times_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return offsetof(CUpti_ActivityKernel9, start);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return offsetof(CUpti_ActivityMemcpy5, start);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return offsetof(CUpti_ActivityMemset4, start);
    default:
      return 0;
  }
}

/// Writes the times of ended work. @return whether all work has ended
bool finish(Buffer& buffer) {
  const std::uint64_t time = now();
  const auto ended = [&](const Unfinished& work) {
    if (work.end > time) return false;
    std::memcpy(buffer.bytes + work.times, &work.begin, sizeof work.begin);
    std::memcpy(buffer.bytes + work.times + sizeof work.begin, &work.end, sizeof work.end);
    return true;
  };
  buffer.unfinished.erase(std::remove_if(buffer.unfinished.begin(), buffer.unfinished.end(), ended),
                          buffer.unfinished.end());
  return buffer.unfinished.empty();
}

/// Appends a buffer to the file that the variable FAKE_BUFFERS names, if it is set: the numbers of its records and
/// bytes, the kind and the place of each record, and the bytes.
void keep(const Buffer& buffer) {
  static const char* const path = getenv("FAKE_BUFFERS");
  if (path == nullptr) return;
  static std::mutex guard;
  const std::lock_guard lock{guard};
  std::FILE* const file = std::fopen(path, "ab");
  if (file == nullptr) std::abort();
  const std::uint64_t counts[] = {buffer.records.size(), buffer.used};
  std::fwrite(counts, sizeof counts, 1, file);
  std::fwrite(buffer.records.data(), sizeof buffer.records[0], buffer.records.size(), file);
  std::fwrite(buffer.bytes, 1, buffer.used, file);
  std::fclose(file);
}

void hand_out(const Buffer& buffer) {
  keep(buffer);
  complete(nullptr, 0, buffer.bytes, buffer.capacity, buffer.used);
}

}  // namespace

std::uint32_t cupti_version() {
  static const char* const wanted = getenv("FAKE_CUPTI_VERSION");
  return wanted == nullptr ? 26 : static_cast<std::uint32_t>(std::atoi(wanted));
}

std::size_t record_size(CUpti_ActivityKind kind) {
  struct Since {
    std::uint32_t version;
    std::size_t bytes;
  };
  // Never destroyed: buffers are still read while the job ends.
  static const auto& sizes = *new std::map<CUpti_ActivityKind, std::vector<Since>>{
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, {{0, 208}, {130001, 216}, {130202, 224}, {130500, 248}}},
      {CUPTI_ACTIVITY_KIND_MEMCPY, {{0, 88}, {26, 96}, {130500, 112}}},
      {CUPTI_ACTIVITY_KIND_MEMSET, {{0, 88}, {130500, 104}}},
      {CUPTI_ACTIVITY_KIND_MEMORY2, {{0, 120}, {24, 128}}},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, {{0, 40}, {26, 56}}},
      {CUPTI_ACTIVITY_KIND_CUDA_EVENT, {{0, 24}, {26, 56}, {130500, 80}}},
      {CUPTI_ACTIVITY_KIND_DEVICE, {{0, 184}, {130202, 192}}},
      {CUPTI_ACTIVITY_KIND_OVERHEAD, {{0, 56}}}};
  std::size_t bytes = 0;
  if (const auto found = sizes.find(kind); found != sizes.end())
    for (const Since& since : found->second)
      if (since.version <= cupti_version()) bytes = since.bytes;
  return bytes;
}

bool has_buffer_callbacks() { return request != nullptr; }

void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
}

bool add_to_buffer(CUpti_ActivityKind kind, const void* record, std::size_t bytes, std::unique_lock<std::mutex>& lock) {
  const std::size_t size = record_size(kind);
  Buffer& buffer = buffers()[std::this_thread::get_id()];
  if (buffer.bytes != nullptr && buffer.used + size > buffer.capacity) {
    Buffer full = std::exchange(buffer, {});
    if (finish(full)) {
      lock.unlock();  // the real CUPTI calls back without a lock, too
      hand_out(full);
      lock.lock();
    } else {
      waiting().push_back(std::move(full));
    }
  }
  if (buffer.bytes == nullptr) {
    std::size_t most = 0;
    request(&buffer.bytes, &buffer.capacity, &most);
    if (buffer.bytes == nullptr) return false;
  }
  std::uint8_t* const place = buffer.bytes + buffer.used;
  std::memset(place, 0, size);
  std::memcpy(place, record, std::min(bytes, size));
  if (const std::size_t times = times_of(kind); times != 0) {
    Unfinished work{buffer.used + times, 0, 0};
    std::memcpy(&work.begin, place + times, sizeof work.begin);
    std::memcpy(&work.end, place + times + sizeof work.begin, sizeof work.end);
    if (work.end > now()) {
      std::memset(place + times, 0, 2 * sizeof work.begin);
      buffer.unfinished.push_back(work);
    }
  }
  buffer.records.emplace_back(kind, static_cast<std::uint32_t>(buffer.used));
  buffer.used += size;
  return true;
}

void hand_out_all(bool forced) {
  std::vector<Buffer> ready;
  {
    const std::lock_guard lock{activity_mutex};
    std::vector<Buffer> full = std::move(waiting());
    waiting().clear();
    for (Buffer& buffer : full) (finish(buffer) || forced ? ready : waiting()).push_back(std::move(buffer));
    for (auto each = buffers().rbegin(); each != buffers().rend(); ++each)
      if (each->second.used != 0 && (finish(each->second) || forced)) ready.push_back(std::exchange(each->second, {}));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < ready.size(); ++i) threads.emplace_back([&buffer = ready[i]] { hand_out(buffer); });
  if (!ready.empty()) hand_out(ready[0]);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace fake
