#include "simulator/engine/exposed_copies.hpp"

#include <algorithm>

#include "simulator/engine/timeline.hpp"

namespace tidepool {
namespace {

/// Of the copies for which an op may wait, the one that ends last.
struct Last {
  VersionId version;
  Nanos end;
  void offer(VersionId other, Nanos time) {
    if (!version.valid() || time > end) version = other, end = time;
  }
};

/// The copies of one direction on one link, in the order in which they were issued.
class Lane {
 public:
  Lane(const Trace& trace, const Link& link, std::vector<Nanos>& exposed)
      : trace_{trace}, link_{link}, exposed_{exposed}, position_(trace.versions().size()) {}

  void begin_iteration() { begin_ = copies_.size(); }
  void add(VersionId v) {
    position_[v.index()] = copies_.size();
    copies_.push_back(v);
  }
  /// Charges the wait of an op to the copy of `v`, which has been added, and the rest to the copies before it, the
  /// latest first.
  void expose(VersionId v, Nanos waited) {
    for (std::size_t i = position_[v.index()] + 1; i-- > 0 && waited > Nanos{};) {
      const Nanos part = std::min(waited, link_.time(trace_.size(copies_[i])));
      exposed_[copies_[i].index()] += part;
      waited -= part;
    }
  }
  /// Whether `v` has been copied in this iteration.
  bool has(VersionId v) const {
    const std::size_t i = position_[v.index()];
    return i >= begin_ && i < copies_.size() && copies_[i] == v;
  }

 private:
  const Trace& trace_;
  const Link& link_;
  std::vector<Nanos>& exposed_;
  std::vector<VersionId> copies_;      // also of earlier iterations, for which ops of this one may wait
  std::size_t begin_ = 0;              // of this iteration, in copies_
  std::vector<std::size_t> position_;  // by version, of its last copy
};

/// The copies of one direction: those to or from the host, and those to or from storage, which has a queue of its own.
class Lanes {
 public:
  Lanes(const Trace& trace, const Link& host, const Link& storage, std::vector<Nanos>& exposed)
      : exposed_{exposed},
        host_{trace, host, exposed},
        storage_{trace, storage, exposed},
        in_storage_(trace.versions().size()) {}

  void begin_iteration() {
    host_.begin_iteration();
    storage_.begin_iteration();
    exposed_.assign(in_storage_.size(), Nanos{});
  }
  void add(VersionId v, bool in_storage) {
    in_storage_[v.index()] = in_storage;
    of(v).add(v);
  }
  void expose(VersionId v, Nanos waited) { of(v).expose(v, waited); }
  bool has(VersionId v) { return of(v).has(v); }

 private:
  Lane& of(VersionId v) { return in_storage_[v.index()] ? storage_ : host_; }

  std::vector<Nanos>& exposed_;
  Lane host_, storage_;
  std::vector<bool> in_storage_;  // by version, of its last copy
};

}  // namespace

ExposedCopies exposed_copies(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  ExposedCopies exposed;
  const auto copies = [](const Action& action) {
    return action.verb == Verb::kSwapIn || action.verb == Verb::kSwapOut;
  };
  if (std::ranges::none_of(plan.actions, copies)) {
    exposed.in.resize(trace.versions().size());
    exposed.out = exposed.in;
    return exposed;
  }
  std::vector<VersionState> states;
  Timeline timeline{trace, spec.machine, spec.assume, states, spec.capacity};
  Lanes in{trace, spec.machine.h2d, spec.machine.storage.read, exposed.in};
  Lanes out{trace, spec.machine.d2h, spec.machine.storage.write, exposed.out};
  const auto begin = [&] {
    in.begin_iteration();
    out.begin_iteration();
  };
  begin();
  Last left;  // of the copies out of places that were given up since the previous op
  for (const Action& action : plan.actions) {
    const VersionId v{action.subject};
    if (action.verb == Verb::kNext) begin();
    if (action.verb == Verb::kSwapIn) in.add(v, states[v.index()].in_storage);
    if (action.verb == Verb::kDrop && out.has(v)) left.offer(v, states[v.index()].host_ready);
    if (action.verb != Verb::kRun) {
      timeline.apply(action);
      if (action.verb == Verb::kSwapOut) out.add(v, states[v.index()].in_storage);
      continue;
    }
    const OpId op{action.subject};
    const Stall before = timeline.totals().stall;
    Last read;
    for (const Use& use : trace.uses(op)) {
      if (!use.in.valid()) continue;
      const VersionId root = trace.root(use.in);
      if (states[root.index()].from_host && in.has(root)) read.offer(root, states[root.index()].ready);
    }
    timeline.apply(action);
    const Stall after = timeline.totals().stall;
    if (read.version.valid()) in.expose(read.version, after.h2d - before.h2d);
    if (left.version.valid()) out.expose(left.version, after.d2h - before.d2h);
    left = {};
  }
  return exposed;
}

}  // namespace tidepool
