// The bounds "order-load" and "order-swap": they hold for every order of the ops that keeps their dependencies.
//
// An op k divides the other ops into those that run before it in every order, those that run after it in every order,
// and the rest. Content exists while k runs if both of these hold: it existed before the step or an op of the first
// kind makes it; and an op of the second kind reads it or it is an output of the step. If nothing may leave the device,
// this content and the buffers of k must fit together. If content may be copied, the part that does not fit is on the
// host while k runs. Before k, all ops of the first kind run, and the step copies out the absent content that it has
// made; the slower of both counts. After k, all ops of the second kind run, and the absent content that is read later
// is copied in; the slower of both counts again.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/order/alive.hpp"

namespace tidepool {
namespace {

std::string name_of(const Trace& trace, std::size_t op) {
  return fmt::format("op {} ({})", op, trace.text(trace.ops()[op].name));
}

std::optional<Bound> load(const BoundQuery& query) {
  if (!query.order || query.swap || query.remat) return std::nullopt;
  const Lifetimes lifetimes{query.trace};
  const Bytes least = alive_bound(lifetimes, dependencies_of(query.trace));
  if (least <= query.capacity) return std::nullopt;
  return Bound{.feasible = false,
               .proof = fmt::format("the content that is alive at once in every order takes {}", to_text(least))};
}

/// The largest rate of a link for copies of any size, in bytes per ns.
double fastest(const Link& link) {
  double rate = static_cast<double>(link.rate.count()) / 1e9;
  for (const TimedSize& each : link.times)
    rate = std::max(rate, static_cast<double>(each.size.count()) /
                              static_cast<double>(std::max<std::int64_t>(each.time.count(), 1)));
  return rate;
}

/// Bytes of the content that exists while an op runs, without the buffers that the op itself uses: all of it, the part
/// from before the step, and the part that no op after it reads.
struct Existing {
  Bytes all, initial, not_read;
};

/// The content that exists while an op runs, in every order.
class Contents {
 public:
  explicit Contents(const Trace& trace)
      : trace_{trace},
        dependencies_{dependencies_of(trace)},
        before_{reachable_ops(dependencies_.before, true)},
        after_{reachable_ops(dependencies_.after, false)},
        handed_on_(trace.versions().size()) {
    for (const VersionId v : handed_on(trace)) handed_on_[v.index()] = true;
  }

  Existing during(std::size_t op, const WorkingSet& own) const {
    Existing sum;
    for (std::size_t i = 0; i < trace_.versions().size(); ++i) {
      const VersionId v{i};
      const Version& version = trace_.version(v);
      if (version.kind == VersionKind::kView) continue;
      const bool initial = version.kind == VersionKind::kInitial;
      if (initial ? !trace_.buffer(version.buffer).born_before : !before_.has(op, version.producer.index())) continue;
      const std::span readers = trace_.readers(v);
      const bool read =
          std::any_of(readers.begin(), readers.end(), [&](OpId reader) { return after_.has(op, reader.index()); });
      if (!read && !handed_on_[i]) continue;
      if (std::binary_search(own.held.begin(), own.held.end(), v) || replaced_by(op, v)) continue;
      sum.all += trace_.size(v);
      if (initial) sum.initial += trace_.size(v);
      if (!read) sum.not_read += trace_.size(v);
    }
    return sum;
  }
  Nanos time_before(std::size_t op) const { return time_of(before_, op); }
  Nanos time_after(std::size_t op) const { return time_of(after_, op); }

 private:
  bool replaced_by(std::size_t op, VersionId v) const {
    const std::span made = trace_.made(OpId{op});
    return std::any_of(made.begin(), made.end(), [&](VersionId out) { return trace_.version(out).parent == v; });
  }
  Nanos time_of(const OpSets& set, std::size_t op) const {
    Nanos sum;
    for (std::size_t other = 0; other < trace_.ops().size(); ++other)
      if (set.has(op, other)) sum += trace_.ops()[other].duration;
    return sum;
  }

  const Trace& trace_;
  const Dependencies dependencies_;
  const OpSets before_, after_;
  std::vector<bool> handed_on_;  // by version
};

std::optional<Bound> swaps(const BoundQuery& query) {
  const Trace& trace = query.trace;
  if (!query.order || !query.swap || query.remat || trace.ops().size() > kMostReached || !iterations_are_apart(query) ||
      query.capacity >= trace.ideal_peak())
    return std::nullopt;
  const bool tiers = query.machine.storage.capacity > Bytes{};
  const double out = fastest(query.machine.d2h) + (tiers ? fastest(query.machine.storage.write) : 0);
  const double in = fastest(query.machine.h2d) + (tiers ? fastest(query.machine.storage.read) : 0);
  const auto time_at = [](Bytes bytes, double rate) {
    return Nanos{static_cast<std::int64_t>(static_cast<double>(std::max(bytes, Bytes{}).count()) / rate)};
  };
  const Contents contents{trace};
  Nanos most, lost_out, lost_in;
  std::size_t at = 0;
  for (std::size_t op = 0; op < trace.ops().size(); ++op) {
    const WorkingSet own = working_set(trace, query.assume, OpId{op});
    const Existing exists = contents.during(op, own);
    const Bytes absent = own.bytes + exists.all - query.capacity;
    if (absent <= Bytes{}) continue;
    const Nanos before = contents.time_before(op), after = contents.time_after(op);
    const Nanos leaves = std::max(before, time_at(absent - exists.initial, out)),
                returns = std::max(after, time_at(absent - exists.not_read, in));
    if (leaves + returns + trace.ops()[op].duration <= most) continue;
    most = leaves + returns + trace.ops()[op].duration;
    lost_out = leaves - before, lost_in = returns - after, at = op;
  }
  if (most <= earliest_ends(trace).back()) return std::nullopt;
  return Bound{.makespan = clock_start(query) + most,
               .proof = fmt::format("bytes that must be absent during {} in every order", name_of(trace, at)),
               .limited_by = lost_out >= lost_in ? Resource::kD2h : Resource::kH2d};
}

const RegisterBound kLoad{{.name = "order-load",
                           .summary = "no order fits into fewer bytes than are alive at once in every order",
                           .swap = false,
                           .remat = false,
                           .steady = true,
                           .order = true,
                           .compute = load}};

const RegisterBound kSwaps{{.name = "order-swap",
                            .summary = "copies of bytes that must be absent during one op in every order",
                            .remat = false,
                            .steady = true,
                            .order = true,
                            .compute = swaps}};

}  // namespace
}  // namespace tidepool
