// The bound "working-set": no plan exists below the largest working set.
//
// When an op runs, its inputs have content and its outputs have places. All places differ, except that an output may
// take the place of the version that it replaces. At the end of the step all its outputs are in memory; plans that swap
// may leave outputs in buffers from before the step on the host. Plans that do not swap have all content from before
// the step in memory when the step begins, and keep versions that no op can recompute as long as they are needed.
#include "simulator/solvers/bounds/op_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/recompute_bounds.hpp"

namespace tidepool {
namespace {

void sort_once(std::vector<VersionId>& versions) {
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
}

Bytes sum_of(const Trace& trace, const std::vector<VersionId>& versions) {
  Bytes sum;
  for (const VersionId v : versions) sum += trace.size(v);
  return sum;
}

bool is_pinned(const Trace& trace, VersionId v) {
  const Version& version = trace.version(v);
  if (version.kind == VersionKind::kInitial) return true;
  return version.kind != VersionKind::kView && trace.op(version.producer).kind == OpKind::kSource;
}

/// Bytes that every plan must have in memory at the end of the step.
Bytes end_bytes(const BoundQuery& query) {
  if (query.steady || (query.swap && query.iterations > 1)) return {};
  Bytes bytes;
  for (const VersionId v : handed_on(query.trace))
    if (!query.swap || !query.trace.buffer(query.trace.version(v).buffer).born_before) bytes += query.trace.size(v);
  return bytes;
}

Bound too_large(const std::string& who, Bytes bytes) {
  return {.feasible = false, .proof = fmt::format("{} {}", who, to_text(bytes))};
}

std::string name_of(const Trace& trace, OpId op) {
  return fmt::format("op {} ({})", op.value(), trace.text(trace.op(op).name));
}

/// For plans that swap, and for plans in any order.
std::optional<Bound> largest_working_set(const BoundQuery& query) {
  const Trace& trace = query.trace;
  const std::vector<Bytes> beside = pinned_beside(trace, query.assume);
  Bytes largest = end_bytes(query);
  OpId at;
  for (std::size_t i = 0; i < trace.ops().size(); ++i)
    if (const Bytes bytes = working_set(trace, query.assume, OpId{i}).bytes + beside[i]; bytes > largest)
      largest = bytes, at = OpId{i};
  if (largest <= query.capacity) return std::nullopt;
  return too_large(at.valid() ? fmt::format("the content that {} uses at once takes", name_of(trace, at))
                              : "the outputs that must be in memory at the end of the step take",
                   largest);
}

/// The bound for plans that do not swap.
std::optional<Bound> largest_without_swaps(const BoundQuery& query) {
  const Trace& trace = query.trace;
  Bytes before;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) before += buffer.size;
  if (before > query.capacity) return too_large("the content from before the step takes", before);
  if (query.order) return largest_working_set(query);
  const RecomputeModel model{trace, query.assume, StreamId{0}};
  const std::vector<Bytes> taken = irreplaceable_bytes(model);
  const auto largest = std::max_element(taken.begin(), taken.end());
  if (*largest <= query.capacity) return std::nullopt;
  const OpId at{static_cast<std::uint32_t>(largest - taken.begin())};
  return too_large(
      at.index() < trace.ops().size()
          ? fmt::format("the content that {} uses at once, or that is needed later and cannot be recomputed, takes",
                        name_of(trace, at))
          : "the outputs that must be in memory at the end of the step take",
      *largest);
}

std::optional<Bound> feasibility(const BoundQuery& query) {
  std::optional<Bound> bound = query.swap ? largest_working_set(query) : largest_without_swaps(query);
  if (bound && !query.swap) bound->with = with_text(false, true);
  return bound;
}

const RegisterBound kWorkingSet{{.name = "working-set",
                                 .summary = "no plan exists below the largest working set of an op",
                                 .steady = true,
                                 .order = true,
                                 .compute = feasibility}};

std::optional<Bound> keep_all(const BoundQuery& query) {
  const Bytes peak = ideal_peak(query.trace, query.assume);
  if (peak <= query.capacity) return std::nullopt;
  return Bound{.feasible = false,
               .proof = fmt::format("the content that is alive at once takes {}, and no action may move or drop it",
                                    to_text(peak))};
}

const RegisterBound kKeepAll{{.name = "load",
                              .summary = "no plan that keeps everything exists below the largest sum of live bytes",
                              .swap = false,
                              .remat = false,
                              .steady = true,
                              .compute = keep_all}};

}  // namespace

WorkingSet working_set(const Trace& trace, const Assumptions& assume, OpId op) {
  WorkingSet set;
  for (const Use& use : trace.uses(op))
    if (use.in.valid()) set.held.push_back(trace.root(use.in));
  set.held.insert(set.held.end(), trace.made(op).begin(), trace.made(op).end());
  if (!assume.copy_on_write)
    for (const VersionId made : trace.made(op))
      if (const VersionId replaced = trace.version(made).parent; replaced.valid())
        set.held.erase(std::remove(set.held.begin(), set.held.end(), replaced), set.held.end());
  sort_once(set.held);
  set.bytes = sum_of(trace, set.held);
  return set;
}

std::vector<VersionId> handed_on(const Trace& trace) {
  std::vector<VersionId> roots;
  for (const VersionId named : trace.outputs()) roots.push_back(trace.root(named));
  sort_once(roots);
  return roots;
}

std::vector<Bytes> pinned_beside(const Trace& trace, const Assumptions& assume) {
  std::vector<Bytes> beside(trace.ops().size() + 1);
  if (!assume.pin_sources) return beside;
  Bytes pinned;
  std::vector<bool> there(trace.versions().size());
  const auto pin = [&](VersionId v) {
    if (!is_pinned(trace, v) || there[v.index()]) return;
    there[v.index()] = true;
    pinned += trace.size(v);
  };
  for (std::size_t b = 0; b < trace.buffers().size(); ++b)
    if (trace.buffers()[b].born_before) pin(trace.first_version(BufferId{b}));
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc)
      if (const VersionId v = trace.first_version(BufferId{event.id}); trace.version(v).kind == VersionKind::kInitial)
        pin(v);
    if (event.kind != EventKind::kRun) continue;
    for (const VersionId made : trace.made(OpId{event.id})) pin(made);
    beside[event.id] = pinned;
    for (const VersionId v : working_set(trace, assume, OpId{event.id}).held)
      if (there[v.index()]) beside[event.id] -= trace.size(v);
  }
  beside.back() = pinned;
  for (const VersionId v : handed_on(trace))
    if (there[v.index()]) beside.back() -= trace.size(v);
  return beside;
}

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
