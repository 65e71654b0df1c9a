// The bound "one-stream": a step of several streams takes no less time than its part on the busiest stream.
//
// The part has the ops of this stream, in their order, and the buffers that they use. In every run of the whole step,
// these ops run one after the other, and at each moment the content of these buffers that is in memory takes no more
// than the capacity, since no two contents use the same bytes at a time. Copies of these contents use the links one
// after the other. So what the run does with this stream and these buffers is a run of the part, which lasts no longer:
// no action of the part waits for more than it did, as long as copies slow each other down in no way. Bounds on the
// part therefore hold for the step. The part asks for less than the step in these ways:
//   - Uses by ops of other streams need no memory, and what such ops write was written by the last op of the stream.
//   - A buffer exists from the first to the last op of the stream that uses it.
//   - If an op of another stream overwrites a buffer, or changes it and may run again, then its content may be brought
//     back at no cost for the stream: the buffer only exists during each op of the stream that uses it.
// The first op of the stream does not begin before the longest chain of ops that leads to it.
#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"
#include "traces/builder.hpp"

namespace tidepool {
namespace {

class PartOfStep {
 public:
  /// @param remat  whether plans may run ops again
  PartOfStep(const Trace& trace, StreamId stream, bool remat)
      : trace_{trace}, stream_{stream}, left_(trace.buffers().size()), brought_back_(trace.buffers().size()) {
    std::vector<bool> handed(trace.buffers().size());
    for (const VersionId v : handed_on(trace)) handed[trace.version(v).buffer.index()] = true;
    for (std::size_t i = 0; i < trace.ops().size(); ++i) {
      const OpId op{i};
      if (trace.op(op).stream == stream)
        for_each_buffer(op, [&](BufferId buffer, bool) { ++left_[buffer.index()]; });
      else
        for (const VersionId made : trace.made(op))
          if (trace.version(made).kind != VersionKind::kUpdate || (remat && trace.op(op).kind != OpKind::kSource))
            brought_back_[trace.version(made).buffer.index()] = true;
    }
    for (std::size_t i = 0; i < left_.size(); ++i)
      if (const BufferId id{i}; !trace.buffer(id).born_before && keeps_as_it_comes(id)) brought_back_[i] = true;
    buffers_.resize(left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (handed[i]) ++left_[i];  // after all ops
      if (trace.buffers()[i].born_before && left_[i] > 0 && !brought_back_[i])
        buffers_[i] = part_.existing({.size = trace.buffers()[i].size});
    }
  }

  Trace part() && {
    const std::vector<Nanos> ends = earliest_ends(trace_);
    bool first = true;
    for (std::size_t i = 0; i < trace_.ops().size(); ++i) {
      const Op& op = trace_.ops()[i];
      if (op.stream != stream_) continue;
      if (std::exchange(first, false) && ends[i] > op.duration)
        part_.run({.kind = OpKind::kSource, .duration = ends[i] - op.duration}, {});
      add(OpId{i}, op);
    }
    part_.only_given_outputs();
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (left_[i] > 0 && buffers_[i].valid()) part_.output(part_.content(buffers_[i]));
    return part_.finish();
  }

 private:
  /// Calls take(buffer, whether it is only written) for each buffer that an op uses, once.
  template <class Take>
  void for_each_buffer(OpId op, const Take& take) const {
    std::vector<std::pair<BufferId, bool>> uses;  // only written
    for (const Use& use : trace_.uses(op))
      if (use.in.valid()) uses.emplace_back(trace_.version(use.in).buffer, false);
    for (const VersionId made : trace_.made(op)) uses.emplace_back(trace_.version(made).buffer, true);
    std::sort(uses.begin(), uses.end());  // reads come first
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (i == 0 || uses[i].first != uses[i - 1].first) take(uses[i].first, uses[i].second);
  }

  bool writes(OpId op, BufferId buffer) const {
    const std::span made = trace_.made(op);
    return std::any_of(made.begin(), made.end(), [&](VersionId v) { return trace_.version(v).buffer == buffer; });
  }

  /// Whether an op reads a new buffer that no op has written, and leaves it as it is. Such content is never kept.
  bool keeps_as_it_comes(BufferId id) const {
    const VersionId first = trace_.first_version(id);
    if (!first.valid() || trace_.version(first).kind != VersionKind::kInitial) return false;
    const std::span readers = trace_.readers(first);
    return std::any_of(readers.begin(), readers.end(), [&](OpId op) { return !writes(op, id); });
  }

  void add(OpId id, const Op& op) {
    std::vector<TraceBuilder::Touch> touches;
    std::vector<BufferId> ends;
    Bytes beside;
    for_each_buffer(id, [&](BufferId buffer, bool only_written) {
      const std::size_t i = buffer.index();
      if (brought_back_[i]) {
        beside += trace_.buffers()[i].size;
        return;
      }
      const bool is_new = !buffers_[i].valid();
      if (is_new) buffers_[i] = part_.alloc({.size = trace_.buffers()[i].size});
      const Access access = is_new || only_written ? Access::kWrite
                            : writes(id, buffer)   ? Access::kReadWrite
                                                   : Access::kRead;
      touches.push_back({buffers_[i], access, Evidence::kSchema});
      if (--left_[i] == 0) ends.push_back(buffers_[i]);
    });
    if (beside > Bytes{}) {
      ends.push_back(part_.alloc({.size = beside}));
      touches.push_back({ends.back(), Access::kWrite, Evidence::kSchema});
    }
    part_.run({.kind = op.kind, .duration = op.duration}, touches);
    for (const BufferId buffer : ends) part_.free(buffer);
  }

  const Trace& trace_;
  StreamId stream_;
  std::vector<std::uint32_t> left_;  // by buffer: the ops of the stream that use it, and the end of the step
  std::vector<bool> brought_back_;   // by buffer
  std::vector<BufferId> buffers_;    // of the part, by buffer of the step
  TraceBuilder part_;
};

std::optional<Bound> one_stream(const BoundQuery& query) {
  const Trace& trace = query.trace;
  if (trace.data().streams.size() == 1 || query.iterations > 1 || !query.assume.name.empty() ||
      query.machine.storage.capacity > Bytes{} || query.capacity >= trace.ideal_peak())
    return std::nullopt;
  const Trace part = PartOfStep{trace, RecomputeModel::busiest_stream(trace), query.remat}.part();
  Machine machine = query.machine;
  machine.launch = {};
  machine.host = {};
  for (Link* link : {&machine.h2d, &machine.d2h}) link->duplex_ppm = 1'000'000, link->slowdown_ppm = 0;
  std::optional<Bound> bound = best_bound(
      {.trace = part, .machine = machine, .capacity = query.capacity, .swap = query.swap, .remat = query.remat});
  if (bound && bound->feasible && bound->limited_by == Resource::kCompute) return std::nullopt;
  if (bound) bound->proof = "on the busiest stream: " + bound->proof;
  return bound;
}

const RegisterBound kOneStream{
    {.name = "one-stream", .summary = "of several streams, the busiest one and what it uses", .compute = one_stream}};

}  // namespace
}  // namespace tidepool
