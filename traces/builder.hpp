// Builder of a trace in program order, for importers, recorders and tests.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Appends buffers, ops and steps in the order in which they happened and keeps track of versions.
/// Misuse that a file can cause (free without alloc, use after free, negative size or duration) throws InputError
/// without a position; the caller knows the line and adds it with InputError::at.
class TraceBuilder {
 public:
  /// @param streams  names of the streams to begin with; at least one
  explicit TraceBuilder(const std::vector<std::string>& streams = {"0"});

  /// The id of a text; equal texts share one id.
  StringId text(std::string_view value);
  /// The id of the stream with this name, which is added if it is new.
  StreamId stream(std::string_view name);

  /// A buffer that existed before the trace began. `spec.born_before` is set here.
  BufferId existing(Buffer spec);
  /// A buffer that comes into being now.
  /// @throws InputError  "buffer N: size is -5; expected at least 0"
  BufferId alloc(Buffer spec);
  /// The buffer ends now.
  /// @throws InputError  "free of buffer N, which is not allocated"
  void free(BufferId id);

  /// A use of a buffer by an op, for run(). For kRead, kReadWrite, kTouch and kView, `through` may name the version or
  /// view that is used; by default it is the buffer's current version.
  struct Touch {
    BufferId buffer;
    Access access = Access::kRead;
    Evidence evidence = Evidence::kInferred;
    VersionId through = VersionId{};
  };
  /// An op runs now. Several touches of one buffer by one op are allowed; reads see the content before the op.
  /// @return the version or view that each touch made, none for reads
  /// @throws InputError  "op N uses buffer M, which is not allocated", "op N: duration is -5; expected at least 0"
  std::vector<VersionId> run(Op spec, const std::vector<Touch>& touches);

  /// The program drops its last reference to a version that was overwritten in place.
  void forget(VersionId id);
  /// Adds a mark before the next step.
  void mark(MarkKind kind, std::string_view name);
  void order(OpId before, OpId after);  ///< op `after` waits for op `before`

  /// The current version of a buffer; none if the trace has allocated it and no op has written or read it yet.
  VersionId current(BufferId id) const { return current_[id.index()]; }
  /// The same, but a buffer without a version gets an initial one now.
  VersionId content(BufferId id);
  /// Whether a buffer is allocated now.
  bool live(BufferId id) const { return id.index() < live_.size() && live_[id.index()]; }
  /// The trace so far; its `outlives` are not set yet.
  const TraceData& so_far() const { return data_; }
  /// The last op so far; none if there is none.
  OpId last_op() const { return OpId{data_.ops.size() - 1}; }
  Losses& losses() { return data_.losses; }
  std::map<std::string, std::string>& meta() { return data_.meta; }
  /// Makes a version an output of the step. Without any such call, finish() makes the current version of every buffer
  /// that is still allocated an output, in id order.
  void output(VersionId id);
  /// The outputs are those that output() names, even if there are none.
  void only_given_outputs() { outputs_given_ = true; }

  /// Ends the trace; buffers still allocated outlive it. The builder is empty afterwards.
  /// @throws InputError  as the constructor of Trace
  Trace finish();

 private:
  VersionId add_version(Version version);

  TraceData data_;
  std::vector<VersionId> current_;  // by buffer
  std::vector<bool> live_;          // by buffer
  std::unordered_map<std::string, StringId> string_ids_;
  std::unordered_map<std::string, StreamId> stream_ids_;
  bool outputs_given_ = false;
};

}  // namespace tidepool
