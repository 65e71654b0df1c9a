// Arguments and results of the kernels of kernels.cu. Compiled by nvcc too: plain integers only.
#pragma once

#include <cstdint>

namespace tidepool::cuda {

/// A range of words and its content.
struct Span {
  std::uint64_t words;    ///< address of the first word
  std::uint64_t count;    ///< words of the content
  std::uint64_t covered;  ///< words over which it is repeated
  std::uint64_t number;   ///< expected content of a read, version of an op's write, content of a fill
};

/// The result of a read. Before the kernel runs, all bits of `first` are set and the other members are 0.
struct Found {
  std::uint64_t wrong;  ///< number of words that are not as expected
  std::uint64_t first;  ///< position of the first of them
  std::uint64_t value;  ///< the word at that position
  std::uint64_t sum;    ///< of part_of_wrong() over all words
};

/// The reads and writes of one step of the program on the device.
struct Work {
  std::uint32_t first;  ///< index in the arrays of spans and results: reads, then writes
  std::uint32_t reads, writes;
  std::uint32_t is_fill;   ///< the content is the number of the span, and does not depend on the reads
  std::uint64_t seed;      ///< op_seed()
  std::uint64_t duration;  ///< in ns, from the begin of the step's first kernel
};

/// Begin and end of a step on the device, in ns of its global timer.
struct Stamp {
  std::uint64_t begin, end;
};

}  // namespace tidepool::cuda
