// Arguments and results of the kernels of kernels.cu. Compiled by nvcc too: plain integers only.
#pragma once

#include <cstdint>

namespace tidepool::cuda {

/// A range of words and its content.
struct Span {
  std::uint64_t words;    ///< address of the first word
  std::uint64_t count;    ///< words of the content
  std::uint64_t covered;  ///< words over which it is repeated
  std::uint64_t number;   ///< for a read the expected content, for a write of an op the version, for a fill the content
};

/// The result of a read. All zero before the kernel, and `first` all ones.
struct Found {
  std::uint64_t wrong;  ///< number of words that are not as expected
  std::uint64_t first;  ///< position of the first of them
  std::uint64_t value;  ///< the word there
  std::uint64_t sum;    ///< of part_of_wrong() over all words
};

struct Work {
  std::uint32_t first;  ///< in the array of spans and of what was found: reads, then writes
  std::uint32_t reads, writes;
  std::uint32_t is_fill;   ///< the content is the number of the span, not made from what was read
  std::uint64_t seed;      ///< op_seed()
  std::uint64_t duration;  ///< in ns, from when the first kernel of the step began
};

/// Begin and end of a step on the device, in ns of its global timer.
struct Stamp {
  std::uint64_t begin, end;
};

}  // namespace tidepool::cuda
