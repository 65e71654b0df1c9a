#include "simulator/solvers/bounds/critical_path.hpp"

#include <algorithm>

namespace tidepool {

std::vector<Nanos> earliest_ends(const Trace& trace, Nanos launch) {
  std::vector<Nanos> streams(trace.data().streams.size()), ready(trace.versions().size()), ends(trace.ops().size());
  const auto& orders = trace.data().orders;
  std::size_t next_order = 0;
  Nanos host;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const OpId id{i};
    const Op& op = trace.op(id);
    host += launch;
    Nanos start = std::max(streams[op.stream.index()], host);
    for (const Use& use : trace.uses(id))
      if (use.in.valid()) start = std::max(start, ready[trace.root(use.in).index()]);
    while (next_order < orders.size() && orders[next_order].after < id) ++next_order;
    for (std::size_t k = next_order; k < orders.size() && orders[k].after == id; ++k)
      start = std::max(start, ends[orders[k].before.index()]);
    ends[i] = streams[op.stream.index()] = start + op.duration;
    // Without a time to launch, ops do not wait for the host.
    if (op.kind == OpKind::kHostWait && launch > Nanos{}) host = std::max(host, ends[i]);
    for (const VersionId made : trace.made(id)) ready[made.index()] = ends[i];
  }
  return ends;
}

bool iterations_are_apart(const BoundQuery& query) {
  if (query.steady) return query.trace.data().streams.size() == 1;
  return query.iterations == 1 || (query.trace.data().streams.size() == 1 && !query.swap);
}

namespace {

/// The time of the host to launch an op; 0 if plans may put ops together or into another order.
Nanos launch_of(const BoundQuery& query) { return query.order ? Nanos{} : query.machine.launch; }

/// For a repeated step: the mean time of an iteration is at least that of the ops of any one stream, even if some
/// streams run iterations ahead of others, and at least that of the host, which launches all ops.
Bound busiest(const BoundQuery& query) {
  const Trace& trace = query.trace;
  std::vector<Nanos> busy(trace.data().streams.size());
  for (const Op& op : trace.ops()) busy[op.stream.index()] += op.duration;
  const Nanos stream = *std::max_element(busy.begin(), busy.end());
  const Nanos host = launch_of(query) * static_cast<std::int64_t>(trace.ops().size());
  if (host > stream) return {.makespan = host, .proof = "the host launches every op"};
  return {.makespan = stream,
          .proof = busy.size() > 1 ? "all ops of the busiest stream" : "every op runs once, one after the other"};
}

std::optional<Bound> critical_path(const BoundQuery& query) {
  if (query.steady) return busiest(query);
  if (!iterations_are_apart(query)) return std::nullopt;
  const Nanos launch = query.iterations == 1 ? launch_of(query) : Nanos{};  // later, the host may be ahead
  const std::vector<Nanos> ends = earliest_ends(query.trace, launch);
  const Nanos last = ends.empty() ? Nanos{} : *std::max_element(ends.begin(), ends.end());
  return Bound{.makespan = clock_start(query) + last,
               .proof = launch > Nanos{}                         ? "every op runs once, after the host launched it"
                        : query.trace.data().streams.size() == 1 ? "every op runs once, one after the other"
                                                                 : "the longest chain of ops that wait for each other"};
}

const RegisterBound kCriticalPath{
    {.name = "critical-path",
     .summary = "the step without any limit: the longest chain of ops that wait for each other",
     .steady = true,
     .order = true,
     .compute = critical_path}};

}  // namespace
}  // namespace tidepool
