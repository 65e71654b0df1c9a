#include "validator/execution/fingerprint.hpp"

namespace tidepool {
namespace {

constexpr std::uint64_t kBroughtAlong = 0x62726f75676874;  ///< mixed into the content of buffers from before the trace
constexpr std::uint64_t kUndefined = 0x756e646566696e;     ///< mixed into the content of memory never written

}  // namespace

std::uint64_t op_content(std::uint64_t seed, std::span<const std::uint64_t> inputs) {
  for (const std::uint64_t input : inputs) seed = mix(seed, input);
  return seed;
}

std::uint64_t Launches::seed(OpId op, bool redraw) {
  std::uint64_t& saved = saved_draw_[op.index()];
  const bool random = trace_.op(op).random;
  if (random && (saved == 0 || redraw)) saved = ++drawn_;
  const std::uint64_t batch = trace_.op(op).kind == OpKind::kSource ? ++runs_[op.index()] : 0;
  return op_seed(op.value(), random ? saved : 0, batch);
}

Expected Expected::first(const Trace& trace) {
  Expected made;
  made.content.resize(trace.versions().size());
  for (std::size_t i = 0; i < trace.versions().size(); ++i) {
    const Version& version = trace.versions()[i];
    if (version.kind != VersionKind::kInitial) continue;
    made.content[i] = trace.buffer(version.buffer).born_before ? mix(mix(kBroughtAlong, version.buffer.value()), 0)
                                                               : mix(kUndefined, i);
  }
  made.run_program(trace);
  return made;
}

Expected Expected::next(const Trace& trace) const {
  Expected made = *this;
  ++made.iteration;
  const std::vector<VersionId> last = last_versions(trace);
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    if (!buffer.born_before) continue;
    made.content[trace.first_version(BufferId{i}).index()] =
        buffer.outlives ? content[last[i].index()] : mix(mix(kBroughtAlong, i), made.iteration);
  }
  made.run_program(trace);
  return made;
}

void Expected::run_program(const Trace& trace) {
  std::vector<std::uint64_t> inputs;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const OpId id{i};
    const Op& op = trace.op(id);
    inputs.clear();
    for (const Use& use : trace.uses(id))
      if (use.in.valid() && use.access != Access::kView) inputs.push_back(content[trace.root(use.in).index()]);
    const std::uint64_t batch = op.kind == OpKind::kSource ? iteration + 1 : 0;
    const std::uint64_t made = op_content(op_seed(id.value(), op.random ? ++draws : 0, batch), inputs);
    for (const Use& use : trace.uses(id))
      if (use.out.valid() && use.access != Access::kView)
        content[use.out.index()] = output_content(made, use.out.value());
  }
}

Expected Reference::first() const { return executed(Expected::first(recorded_)); }

Expected Reference::next(const Expected& before) const {
  if (ordered_ == nullptr) return before.next(recorded_);
  Expected recorded{std::vector<std::uint64_t>(recorded_.versions().size()), before.draws, before.iteration};
  for (std::size_t i = 0; i < before.content.size(); ++i)
    if (const VersionId v = version(VersionId{i}); v.valid()) recorded.content[v.index()] = before.content[i];
  return executed(recorded.next(recorded_));
}

Expected Reference::executed(const Expected& recorded) const {
  if (ordered_ == nullptr) return recorded;
  Expected made{std::vector<std::uint64_t>(executed_.versions().size()), recorded.draws, recorded.iteration};
  for (std::size_t i = 0; i < made.content.size(); ++i)
    if (const VersionId v = version(VersionId{i}); v.valid()) made.content[i] = recorded.content[v.index()];
  return made;
}

std::vector<VersionId> last_versions(const Trace& trace) {
  std::vector<VersionId> last(trace.buffers().size());
  for (std::size_t i = 0; i < trace.versions().size(); ++i)
    if (trace.versions()[i].kind != VersionKind::kView) last[trace.versions()[i].buffer.index()] = VersionId{i};
  return last;
}

}  // namespace tidepool
