// The assumptions of published simulators, by the name given to --assume.
#include <algorithm>

#include "simulator/engine/checker.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

/// The simulator of the DTR authors (simrd, of uwsampl/dtr-prototype): tensors are never written in place, a view of an
/// evicted tensor must be made again, a tensor that was recomputed for others stays until it is evicted, constants are
/// never evicted, and the clock starts at 1 ns.
Assumptions simrd() {
  return {.name = "simrd",
          .copy_on_write = true,
          .replay_views = true,
          .keep_recomputed = true,
          .pin_sources = true,
          .clock_start = Nanos{1}};
}

/// The problems of Checkmate and Moccasin: fixed memory stays resident, and rerun_rules() limits reruns. The rest of
/// their model is the usual one: memory is a sum of bytes (--pool ideal); while an op runs, its output and all resident
/// values count; between two runs of its op, a value is dropped after its last reader. Drops after other readers or at
/// the end of a stage would not make more plans possible.
Assumptions rerun_graph(const std::string& name) {
  Assumptions assume;
  assume.name = name;
  assume.pin_sources = true;
  return assume;
}

}  // namespace

RerunRules rerun_rules(const Assumptions& assume) {
  if (assume.name == "checkmate") return {.in_order = true, .most_runs = 0};
  if (assume.name == "moccasin") return {.in_order = true, .most_runs = 2};
  return {};
}

Assumptions Assumptions::find(const std::string& name) {
  if (name.empty()) return {};
  if (name == "simrd") return simrd();
  if (name == "checkmate" || name == "moccasin") return rerun_graph(name);
  throw InputError{unknown_name("assumptions", name, {"checkmate", "moccasin", "simrd"})};
}

Bytes ideal_peak(const Trace& trace, const Assumptions& assume) {
  if (!assume.copy_on_write) return trace.ideal_peak();
  std::vector<bool> live(trace.versions().size());
  std::vector<VersionId> current(trace.buffers().size());
  Bytes sum, peak;
  const auto begin = [&](VersionId v) {
    live[v.index()] = true;
    sum += trace.size(v);
    peak = std::max(peak, sum);
    current[trace.version(v).buffer.index()] = v;
  };
  const auto end = [&](VersionId v) {
    if (live[v.index()]) sum -= trace.size(v);
    live[v.index()] = false;
  };
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before) begin(trace.first_version(BufferId{i}));
  for (const Event& event : trace.events()) switch (event.kind) {
      case EventKind::kAlloc:
        begin(trace.first_version(BufferId{event.id}));
        break;
      case EventKind::kRun:
        for (const Use& use : trace.uses(OpId{event.id}))
          if (use.out.valid() && use.access != Access::kView && !live[use.out.index()] &&
              trace.version(use.out).parent.valid())
            begin(use.out);
        break;
      case EventKind::kForget:
        end(VersionId{event.id});
        break;
      case EventKind::kFree:
        for (VersionId v = current[event.id]; v.valid(); v = trace.version(v).parent) end(v);
        break;
    }
  return peak;
}

}  // namespace tidepool
