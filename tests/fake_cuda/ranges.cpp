#include "tests/fake_cuda/ranges.hpp"

#include <cstdint>
#include <cstring>

#include "tests/fake_cuda/memory.hpp"
#include "validator/cuda/kernels.hpp"

namespace tidepool::cuda {
namespace {

constexpr double kWordsPerNanosecond = 125;  // of a kernel that clears

template <class T>
T argument(void** arguments, std::size_t number) {
  T value;
  std::memcpy(&value, arguments[number], sizeof(T));
  return value;
}

template <class T>
bool has(const T* array, std::uint64_t index) {
  return is_device_memory(reinterpret_cast<std::uint64_t>(array + index), sizeof(T));
}

bool has_words(const Span* spans, std::uint64_t index) {
  if (!has(spans, index)) return false;
  const Span& span = spans[index];
  const std::uint64_t bytes = span.covered * sizeof(std::uint64_t);
  return bytes == 0 || is_device_memory(span.words, bytes) || is_pinned_memory(span.words, bytes);
}

bool has_step(const Work* works, const Span* spans, const Found* found, std::uint32_t step) {
  if (!has(works, step)) return false;
  const Work& work = works[step];
  for (std::uint32_t i = work.first; i < work.first + work.reads + work.writes; ++i)
    if (!has_words(spans, i) || !has(found, i)) return false;
  return true;
}

bool has_spin(const Stamp* stamps, std::uint32_t step, const std::uint32_t* before, std::uint32_t count) {
  if (!has(stamps, step)) return false;
  for (std::uint32_t i = 0; i < count; ++i)
    if (!has(before, i) || !has(stamps, before[i])) return false;
  return true;
}

}  // namespace

std::function<bool()> range_check(const std::string& kernel, void** arguments) {
  if (kernel == "tidepool_spin") {
    return [stamps = argument<const Stamp*>(arguments, 0), step = argument<std::uint32_t>(arguments, 1),
            before = argument<const std::uint32_t*>(arguments, 2),
            count = argument<std::uint32_t>(arguments, 3)] { return has_spin(stamps, step, before, count); };
  }
  if (kernel == "tidepool_multiply" || kernel == "tidepool_tick")
    return [stamp = argument<const Stamp*>(arguments, 0)] { return has(stamp, 0); };
  if (kernel == "tidepool_clear" || kernel == "tidepool_fold" || kernel == "tidepool_repeat")
    return [spans = argument<const Span*>(arguments, 0), index = argument<std::uint32_t>(arguments, 1)] {
      return has_words(spans, index);
    };
  const bool stamped = kernel != "tidepool_note";
  return
      [works = argument<const Work*>(arguments, 0), spans = argument<const Span*>(arguments, 1),
       found = argument<const Found*>(arguments, 2), stamps = stamped ? argument<const Stamp*>(arguments, 3) : nullptr,
       step = argument<std::uint32_t>(arguments, stamped ? 4 : 3)] {
        return has_step(works, spans, found, step) && (stamps == nullptr || has(stamps, step));
      };
}

double memory_time(const std::string& kernel, void** arguments) {
  if (kernel == "tidepool_multiply") return 1000;
  if (kernel != "tidepool_clear") return 0;
  const DeviceAccess access;
  const auto* const spans = argument<const Span*>(arguments, 0);
  const auto index = argument<std::uint32_t>(arguments, 1);
  return has(spans, index) ? static_cast<double>(spans[index].covered) / kWordsPerNanosecond : 0;
}

}  // namespace tidepool::cuda
