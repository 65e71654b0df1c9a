// Differences in memory between two recordings of a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/step/instant.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// How a buffer of trace A differs from its counterpart in trace B.
enum class Difference : std::uint8_t {
  kNew,      ///< only B has it
  kGone,     ///< only A has it
  kLarger,   ///< both have it, and it is larger in B
  kSmaller,  ///< both have it, and it is smaller in B
  kLonger,   ///< both have it in one size, and B frees it behind a later op, or not at all
  kShorter,  ///< both have it in one size, and A frees it behind a later op, or not at all
};

/// A buffer that differs. An id that does not exist is none.
struct BufferDifference {
  Difference change = Difference::kNew;
  BufferId a, b;
  Bytes bytes;  ///< B's size less A's if the sizes differ, else the size; of one trace only: its size
  std::string
      cause;  ///< line or module of the buffer, or of the first buffer that it depends on and that differs alike
  bool by_line = false;  ///< `cause` is a line, not a module
  Bytes at_peak;         ///< B's live bytes of it less A's at the compared instant; 0: it does not count there
  std::size_t row = 0;   ///< its row in TraceDiff::rows
};

/// Differing buffers with one cause and one kind of change. Those of one kind that are known by their modules, such as
/// gradients, are one row.
struct DifferenceRow {
  Difference change = Difference::kNew;
  std::string cause;  ///< of most of their bytes; "" if nothing is recorded
  std::size_t causes = 1;
  BufferKind kind = BufferKind::kUnknown;  ///< the kind of most of their bytes
  Bytes bytes;
  Bytes at_peak;
  std::int64_t buffers = 0;
  bool by_line = false;   ///< `cause` is a line
  OpId until_a, until_b;  ///< the last op before the largest of them is freed; none: not freed, or not there
};

/// A place of the program, which one trace or both have: positions in events() of the run of an op, or of an allocation
/// if a trace has no ops.
struct ProgramPlace {
  static constexpr std::size_t kNone = ~std::size_t{};
  std::size_t a = kNone, b = kNone;
};

/// What two traces have in common, and what not. Ops are compared by name, module and phase, and buffers by what they
/// are for, so times, addresses and the order of frees within an op make no difference.
struct TraceDiff {
  std::size_t paired_ops = 0;  ///< allocations in the place of ops if a trace has none
  std::size_t only_a = 0, only_b = 0;
  Bytes peak_a, peak_b;
  bool at_b = true;  ///< the compared instant is the peak of B: it is higher, or as high; else that of A
  Instant instant;   ///< the peak of that trace
  Bytes other;       ///< live bytes of the other trace at the same place of the program
  std::vector<BufferDifference> buffers;
  std::vector<DifferenceRow>
      rows;  ///< most bytes at the compared instant in the direction of the peaks' difference first
  std::vector<ProgramPlace> places;  ///< in the order of both programs; what only A has comes first
  OpId first_a, first_b;             ///< the first op that only one trace has or whose buffers differ; none: no such op

  bool same() const { return buffers.empty() && only_a == 0 && only_b == 0; }
};

/// Compares two traces of one device each. O(n log n) if they are alike; see common_subsequence().
TraceDiff diff_traces(const Trace& a, const Trace& b);

}  // namespace tidepool
