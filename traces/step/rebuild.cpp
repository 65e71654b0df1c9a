#include "traces/step/rebuild.hpp"

#include "traces/builder.hpp"
#include "traces/copied.hpp"

namespace tidepool {

Rebuild::Rebuild(const Trace& trace, const std::vector<bool>& left_out)
    : trace_{trace},
      builder_{trace.data().streams},
      buffers_(trace.buffers().size()),
      versions_(trace.versions().size()) {
  builder_.meta() = trace.data().meta;
  builder_.losses() = trace.data().losses;
  builder_.only_given_outputs();
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before && (left_out.empty() || !left_out[i]))
      buffers_[i] = builder_.existing(copied(builder_, trace_, BufferId{i}));
}

void Rebuild::alloc(BufferId buffer) { buffers_[buffer.index()] = builder_.alloc(copied(builder_, trace_, buffer)); }

void Rebuild::run(OpId op, std::span<const Use> uses, Nanos duration) {
  Op spec = copied(builder_, trace_, op);
  spec.duration = duration;
  std::vector<TraceBuilder::Touch> touches;
  for (const Use& use : uses) {
    const VersionId named = use.in.valid() ? use.in : use.out;
    const bool through_view = use.in.valid() && trace_.version(use.in).kind == VersionKind::kView;
    touches.push_back({buffer_of(trace_.version(named).buffer), use.access, use.evidence,
                       through_view ? versions_[use.in.index()] : VersionId{}});
  }
  const std::vector<VersionId> made = builder_.run(spec, touches);
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i].out.valid()) versions_[uses[i].out.index()] = made[i];
}

Trace Rebuild::finish(Outputs outputs) {
  for (const VersionId old : trace_.outputs()) {
    const BufferId buffer = buffer_of(trace_.version(old).buffer);
    if (outputs == Outputs::kAlive && !(buffer.valid() && builder_.live(buffer))) continue;
    const VersionId made = versions_[old.index()];
    builder_.output(made.valid() ? made : builder_.content(buffer));
  }
  return builder_.finish();
}

}  // namespace tidepool
