// Writing a training step that nobody recorded: ops with durations from a roofline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool {

/// What a device does at most. The defaults are an A100's nominal half-precision rate and memory bandwidth, at half and
/// at four fifths.
struct Roofline {
  std::int64_t flops_per_us = 156'000'000;        ///< arithmetic; 10^6 is 1 TFLOP/s
  BytesPerSecond memory_rate{1'548'000'000'000};  ///< of what an op reads and writes
  Nanos least{2'000};                             ///< shortest op
};

/// Appends ops to a trace. An op takes the time of its arithmetic or of what it reads and writes, whichever is longer,
/// and never less than the shortest op. What is made here says that it is synthetic: meta "source" and "time".
class StepWriter {
 public:
  using Touch = TraceBuilder::Touch;

  StepWriter(const Roofline& roofline, const std::string& source);

  BufferId existing(Bytes size, BufferKind kind);
  BufferId alloc(Bytes size, BufferKind kind = BufferKind::kActivation);
  void free(std::initializer_list<BufferId> ids);

  /// @param flops  multiplications and additions
  void op(std::string_view name, double flops, const std::vector<Touch>& touches);
  /// Later ops belong to it.
  void module(const std::string& path);
  void phase(Phase phase);
  void iteration();

  Trace finish() { return builder_.finish(); }

 private:
  Roofline roofline_;
  TraceBuilder builder_;
  std::string module_;
  Phase phase_ = Phase::kUnknown;
};

/// What an op does to a buffer.
inline StepWriter::Touch reads(BufferId id) { return {id, Access::kRead, Evidence::kSchema}; }
inline StepWriter::Touch writes(BufferId id) { return {id, Access::kWrite, Evidence::kSchema}; }
inline StepWriter::Touch updates(BufferId id) { return {id, Access::kReadWrite, Evidence::kSchema}; }

}  // namespace tidepool
