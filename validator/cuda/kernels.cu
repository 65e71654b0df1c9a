// The kernels of the CUDA backend. They read and write contents as words.hpp does, and take a given time. With
// tidepool_clear, tidepool_spin, tidepool_tick and tidepool_multiply, `tidepool calibrate` measures the device.
#include "validator/cuda/kernels.hpp"
#include "validator/execution/mix.hpp"

using tidepool::cuda::Found;
using tidepool::cuda::Span;
using tidepool::cuda::Stamp;
using tidepool::cuda::Work;

namespace {

using Word = unsigned long long;

__device__ Word now() {
#ifdef __CUDACC__
  Word time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
#else
  return global_timer();  // defined by the stand-in in tests/fake_cuda
#endif
}

__device__ Word thread_number() { return Word{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ Word thread_count() { return Word{gridDim.x} * blockDim.x; }

__device__ volatile Word* words_of(const Span& span) { return reinterpret_cast<volatile Word*>(span.words); }

/// Sums over a warp; the first lane has the result.
__device__ Word warp_sum(Word value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffU, value, step);
  return value;
}

__device__ Word content_of(const Work& work, const Span* spans, const Found* found) {
  Word content = work.seed;
  for (unsigned i = work.first; i < work.first + work.reads; ++i)
    content = tidepool::mix(content, found[i].wrong == 0 ? spans[i].number : found[i].sum);
  return content;
}

__device__ void spin_until(Word end) {
  while (static_cast<long long>(now() - end) < 0) {
  }
}

}  // namespace

/// Compares every word that a step reads. Counts wrong words, and sums over all words. The sum is used only if some
/// words are wrong, but summing always is cheaper than deciding.
extern "C" __global__ void tidepool_read(const Work* works, const Span* spans, Found* found, Stamp* stamps,
                                         unsigned step) {
  const Work& work = works[step];
  if (thread_number() == 0) stamps[step].begin = now();
  for (unsigned i = work.first; i < work.first + work.reads; ++i) {
    const Span span = spans[i];
    volatile Word* const words = words_of(span);
    Word wrong = 0, sum = 0;
    for (Word at = thread_number(); at < span.covered; at += thread_count()) {
      const Word value = words[at];
      sum += tidepool::part_of_wrong(value, at);
      if (value == tidepool::word_of(span.number, at < span.count ? at : at % span.count)) continue;
      ++wrong;
      atomicMin(reinterpret_cast<Word*>(&found[i].first), at);
    }
    __syncwarp();
    wrong = warp_sum(wrong);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
      if (wrong != 0) atomicAdd(reinterpret_cast<Word*>(&found[i].wrong), wrong);
      atomicAdd(reinterpret_cast<Word*>(&found[i].sum), sum);
    }
  }
}

/// Keeps the first wrong word of each read, before the step writes. Launched with one block.
extern "C" __global__ void tidepool_note(const Work* works, const Span* spans, Found* found, unsigned step) {
  const Work& work = works[step];
  for (unsigned i = work.first + threadIdx.x; i < work.first + work.reads; i += blockDim.x)
    if (found[i].wrong != 0) found[i].value = words_of(spans[i])[found[i].first];
}

/// Writes the outputs and ends when the step has taken its time.
extern "C" __global__ void tidepool_write(const Work* works, const Span* spans, const Found* found, Stamp* stamps,
                                          unsigned step) {
  const Work& work = works[step];
  const Word content = content_of(work, spans, found);
  for (unsigned i = work.first + work.reads; i < work.first + work.reads + work.writes; ++i) {
    const Span span = spans[i];
    const Word number = work.is_fill != 0 ? span.number : tidepool::output_content(content, span.number);
    volatile Word* const words = words_of(span);
    for (Word at = thread_number(); at < span.covered; at += thread_count())
      words[at] = tidepool::word_of(number, at < span.count ? at : at % span.count);
  }
  if (work.duration != 0) spin_until(stamps[step].begin + work.duration);
  if (thread_number() == 0) stamps[step].end = now();
}

/// Clears a content, so that a late reader finds no valid one.
extern "C" __global__ void tidepool_clear(const Span* spans, unsigned index) {
  const Span span = spans[index];
  for (Word at = thread_number(); at < span.covered; at += thread_count()) words_of(span)[at] = tidepool::kCleared;
}

/// Makes the content itself wrong if one of its repetitions is wrong, since a copy moves only the content.
extern "C" __global__ void tidepool_fold(const Span* spans, unsigned index) {
  const Span span = spans[index];
  volatile Word* const words = words_of(span);
  for (Word at = thread_number(); at < span.count; at += thread_count()) {
    const Word value = words[at];
    Word folded = value;
    for (Word again = at + span.count; again < span.covered; again += span.count)
      if (words[again] != folded) folded = tidepool::mix(folded, words[again]);
    if (folded != value) words[at] = folded;
  }
}

/// Repeats a copied content over all words of its place.
extern "C" __global__ void tidepool_repeat(const Span* spans, unsigned index) {
  const Span span = spans[index];
  volatile Word* const words = words_of(span);
  for (Word at = span.count + thread_number(); at < span.covered; at += thread_count())
    words[at] = words[at % span.count];
}

/// Takes `duration` ns without other work, in runs without content. The duration counts from the latest end of `count`
/// steps, whose numbers are in `before`, or from now if there are none. So it includes the pause between that end and
/// the begin of the kernel. The kernel ends at the first tick of the timer from its planned end on. Later steps count
/// from the planned end, so that these differences do not add up. If the kernel begins after its planned end, it ends
/// at once, and later steps count from its begin.
extern "C" __global__ void tidepool_spin(Stamp* stamps, unsigned step, const unsigned* before, unsigned count,
                                         Word duration) {
  Word begin = count == 0 ? now() : 0;
  for (unsigned i = 0; i < count; ++i)
    if (const Word end = stamps[before[i]].end; end > begin) begin = end;
  const Word end = begin + duration, first = now();
  const bool late = static_cast<long long>(first - end) >= 0;
  stamps[step].begin = begin;
  stamps[step].end = late ? first : end;
  spin_until(end);
}

/// Stores the least of 64 differences between successive values of the global timer as the end of the stamp.
extern "C" __global__ void tidepool_tick(Stamp* stamp) {
  Word last = now(), least = ~Word{0};
  for (int ticks = 0; ticks < 64;) {
    const Word time = now();
    if (time == last) continue;
    if (time - last < least) least = time - last;
    last = time;
    ++ticks;
  }
  stamp->begin = 0;
  stamp->end = least;
}

/// Eight chains of multiply-adds in each thread. The kernel would write if the total were -1, which it never is, so the
/// compiler does not remove the computation.
extern "C" __global__ void tidepool_multiply(Stamp* stamps, unsigned rounds) {
  float sums[8];
  for (unsigned i = 0; i < 8; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
  for (unsigned round = 0; round < rounds; ++round)
    for (int i = 0; i < 8; ++i) sums[i] = sums[i] * 0.999F + 0.001F;
  float total = 0;
  for (int i = 0; i < 8; ++i) total += sums[i];
  if (total == -1.0F) stamps->begin = 1;
}
