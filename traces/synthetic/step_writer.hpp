// Writer of a synthetic training step: ops with durations from a roofline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/total.hpp"
#include "traces/builder.hpp"

namespace tidepool {

inline constexpr std::int64_t kHalf = 2, kSingle = 4;  ///< bytes of a number in half and in single precision

/// The rates of a device. The defaults are half of an A100's nominal half-precision rate, and four fifths of its
/// nominal memory bandwidth.
struct Roofline {
  std::int64_t flops_per_us = 156'000'000;        ///< arithmetic; 10^6 is 1 TFLOP/s
  BytesPerSecond memory_rate{1'548'000'000'000};  ///< for the bytes that an op reads and writes
  Nanos least{2'000};                             ///< shortest op
};

/// A size in bytes: the product of whole numbers, each at least 1.
/// @throws InputError  "a buffer of 1000000 x 4000000 x 2 B; expected at most 2305843009213693952 B"
Bytes checked_size(std::initializer_list<std::int64_t> factors);

/// Appends ops to a trace. An op takes the time of its arithmetic or that of its memory accesses, whichever is longer,
/// and never less than the shortest op. The meta of the trace says that it is synthetic ("source" and "time").
class StepWriter {
 public:
  using Touch = TraceBuilder::Touch;

  StepWriter(const Roofline& roofline, const std::string& source);

  /// @throws InputError  "the sizes add up to more than 2305843009213693952"
  BufferId existing(Bytes size, BufferKind kind);
  /// @throws InputError  as existing()
  BufferId alloc(Bytes size, BufferKind kind = BufferKind::kActivation);
  void free(std::initializer_list<BufferId> ids);

  /// @param flops  multiplications and additions
  /// @throws InputError  "op 'linear' takes 2305843009213693952 ns or longer", "the durations add up to more than
  ///                     2305843009213693952"
  void op(std::string_view name, double flops, const std::vector<Touch>& touches);
  /// Sets the module of later ops.
  void module(const std::string& path);
  /// Sets the phase of later ops, and marks its begin.
  void phase(Phase phase);
  /// Marks the begin of the iteration.
  void iteration();

  Trace finish() { return builder_.finish(); }

 private:
  Roofline roofline_;
  TraceBuilder builder_;
  Total sizes_, durations_;
  std::string module_;
  Phase phase_ = Phase::kUnknown;
};

/// The use of a buffer by an op.
inline StepWriter::Touch reads(BufferId id) { return {id, Access::kRead, Evidence::kSchema}; }
inline StepWriter::Touch writes(BufferId id) { return {id, Access::kWrite, Evidence::kSchema}; }
inline StepWriter::Touch updates(BufferId id) { return {id, Access::kReadWrite, Evidence::kSchema}; }

}  // namespace tidepool
