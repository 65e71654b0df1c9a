// The indexed policies of the DTR family decide as a plain scan over all candidates does.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "policies/planning/eviction/evicted_regions.hpp"
#include "policies/planning/eviction/exact_division.hpp"
#include "simulator/engine/driver.hpp"
#include "simulator/registry.hpp"
#include "tests/bench/training_trace.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::dtr_scan_test {

using tidepool::tests::kOptimised;
using tidepool::tests::random_trace;
using tidepool::tests::training_trace;

namespace {

using Versions = std::set<VersionId>;

Versions parents(const View& view, VersionId v) {
  Versions found;
  view.for_each_parent(v, [&](VersionId parent) { found.insert(parent); });
  return found;
}

Versions children(const View& view, VersionId v) {
  Versions found;
  view.for_each_child(v, [&](VersionId child) { found.insert(child); });
  return found;
}

/// dtr-local as a scan: each decision computes the quotients of all candidates anew. The classes below replace its cost
/// or its quotient.
class Scan : public Policy {
 public:
  bool watches() const override { return true; }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    now_ = std::max(now_, view.now());
    std::map<std::uint32_t, VersionId> candidates;
    for (std::size_t i = 0; i < view.trace().versions().size(); ++i)
      if (view.trace().versions()[i].kind != VersionKind::kView && view.droppable(VersionId{i}))
        candidates.emplace(view.state(VersionId{i}).order, VersionId{i});
    VersionId best;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [order, v] : candidates) {
      const double cost = quotient_for(view, v);
      if (cost <= least) best = v, least = cost;
      if (cost == 0) break;
    }
    if (best.valid()) out.push_back({.verb = Verb::kDrop, .subject = best.value()});
  }

 protected:
  virtual Nanos cost(const View& view, VersionId v) { return view.state(v).cost; }
  virtual double quotient_for(const View& view, VersionId v) {
    const Int128 divisor = static_cast<Int128>(view.size(v).count()) * (now_ - view.state(v).last_access).count();
    return divisor > 0 ? quotient(cost(view, v).count(), divisor) : std::numeric_limits<double>::infinity();
  }

 private:
  Nanos now_;
};

/// dtr-eq as a scan: the classes of absent neighbours are in maps.
class ScanEq final : public Scan {
 public:
  void dropped(const View& view, VersionId v) override {
    join(v);
    classes_.at(class_of_.at(v)) += view.state(v).cost;
    for (const VersionId n : absent_neighbours(view, v)) {
      if (!class_of_.contains(n)) join(n);
      const int from = class_of_.at(n), to = class_of_.at(v);
      if (from == to) continue;
      classes_[to] += classes_[from];
      for (auto& [member, its_class] : class_of_)
        if (its_class == from) its_class = to;
    }
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    for (const VersionId v : versions) {
      if (class_of_.contains(v)) classes_[class_of_[v]] -= view.state(v).cost;
      class_of_.erase(v);
      made_.insert(v);
    }
  }

 private:
  Nanos cost(const View& view, VersionId v) override {
    std::set<int> around;
    for (const VersionId n : absent_neighbours(view, v))
      if (class_of_.contains(n)) around.insert(class_of_[n]);
    Nanos sum = view.state(v).cost;
    for (const int one : around) sum += classes_[one];
    return sum;
  }
  void join(VersionId v) {
    made_.erase(v);
    class_of_[v] = static_cast<int>(classes_.size());
    classes_[class_of_[v]] = Nanos{};
  }
  Versions absent_neighbours(const View& view, VersionId v) {
    Versions found = parents(view, v);
    found.merge(children(view, v));
    std::erase_if(found, [&](VersionId n) {
      return made_.contains(n) || (view.trace().version(n).kind == VersionKind::kInitial && !class_of_.contains(n));
    });
    return found;
  }

  std::map<VersionId, int> class_of_;
  std::map<int, Nanos> classes_;
  Versions made_;
};

/// dtr or msps as a scan: the absent regions above and below each version are in sets.
class ScanRegions : public Scan {
 public:
  explicit ScanRegions(bool msps) : msps_{msps} {}

  void dropped(const View& view, VersionId v) override {
    absent_.insert(v);
    const Region own = up_[v], own_down = down_[v];
    for (const VersionId base : own_down.frontier) absorb(view, up_[base], v, own);
    for (const VersionId base : own.frontier) absorb(view, down_[base], v, own_down);
    up_.erase(v);
    down_.erase(v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    for (const VersionId v : versions) absent_.erase(v), made_.insert(v);
    Versions above, below;
    for (const VersionId v : versions) {
      up_[v] = find(view, v, parents);
      down_[v] = find(view, v, children);
      above.insert(up_[v].frontier.begin(), up_[v].frontier.end());
      below.insert(down_[v].frontier.begin(), down_[v].frontier.end());
    }
    for (const VersionId v : above) down_[v] = find(view, v, children);
    for (const VersionId v : below) up_[v] = find(view, v, parents);
  }

 private:
  struct Region {
    Versions inside, frontier;
    Nanos cost;
  };

  bool present(const View& view, VersionId v) const {
    if (absent_.contains(v)) return false;
    return made_.contains(v) || view.trace().version(v).kind == VersionKind::kInitial;
  }
  Region find(const View& view, VersionId base, const std::function<Versions(const View&, VersionId)>& next) const {
    Region region;
    std::vector<VersionId> open{base};
    while (!open.empty()) {
      const VersionId from = open.back();
      open.pop_back();
      for (const VersionId v : next(view, from)) {
        if (v == base) continue;
        if (present(view, v)) {
          region.frontier.insert(v);
        } else if (region.inside.insert(v).second) {
          region.cost += view.state(v).cost;
          open.push_back(v);
        }
      }
    }
    return region;
  }
  void absorb(const View& view, Region& region, VersionId evicted, const Region& own) const {
    region.frontier.erase(evicted);
    region.frontier.insert(own.frontier.begin(), own.frontier.end());
    const auto add = [&](VersionId v) {
      if (region.inside.insert(v).second) region.cost += view.state(v).cost;
    };
    add(evicted);
    std::for_each(own.inside.begin(), own.inside.end(), add);
  }

  Nanos cost(const View& view, VersionId v) override {
    return view.state(v).cost + up_[v].cost + (msps_ ? Nanos{} : down_[v].cost);
  }
  double quotient_for(const View& view, VersionId v) override {
    if (!msps_) return Scan::quotient_for(view, v);
    const Bytes size = view.size(v);
    return size > Bytes{} ? quotient(cost(view, v).count(), size.count()) : std::numeric_limits<double>::infinity();
  }

  bool msps_;
  Versions absent_, made_;

 protected:
  std::map<VersionId, Region> up_, down_;
};

/// Decides like the scan. At each shortage, compares the scan's cost of every candidate with that of EvictedRegions.
class CheckRegions final : public ScanRegions {
 public:
  CheckRegions() : ScanRegions{false} {}
  void start(const View& view) override { regions_.start(view); }
  void before_run(const View& view, OpId op, std::vector<Action>&) override { regions_.begun(view, op); }
  void dropped(const View& view, VersionId v) override {
    ScanRegions::dropped(view, v);
    regions_.dropped(view, v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    ScanRegions::computed(view, versions);
    regions_.computed(view, versions);
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    constexpr auto kParents = EvictedRegions::Side::kParents, kChildren = EvictedRegions::Side::kChildren;
    regions_.find_bounds(view);
    std::vector<VersionId> cheaper;
    regions_.take_cheaper(view, {kParents, kChildren}, cheaper);
    for (const VersionId v : cheaper) last_.erase(v);
    bool same = true, bounded = true, grown = true;
    for (std::size_t i = 0; i < view.trace().versions().size(); ++i) {
      const VersionId v{i};
      if (view.trace().versions()[i].kind == VersionKind::kView || !view.droppable(v)) continue;
      const Nanos above = regions_.cost(view, kParents, v), below = regions_.cost(view, kChildren, v);
      same &= above == up_[v].cost && below == down_[v].cost;
      bounded &= regions_.bound(view, kParents, v) <= above && regions_.bound(view, kChildren, v) <= below;
      grown &= last_[v] <= above + below;
      last_[v] = above + below;
    }
    CHECK(same);
    CHECK(bounded);
    CHECK(grown);
    ScanRegions::make_room(view, request, out);
  }

 private:
  EvictedRegions regions_;
  std::map<VersionId, Nanos> last_;  // costs of regions at the previous shortage, unless they may be cheaper now
};

Result run(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy) {
  const std::unique_ptr<Pool> pool = find_pool(spec.pool.name).make(Options{spec.pool.name, {}, {}});
  std::vector<std::unique_ptr<Policy>> chain;
  chain.push_back(std::move(policy));
  return Driver{trace, spec, 1_ms, *pool, chain, false, true}.run();
}

/// The same program, in which ops that took no time take 7 us, such as those that make views.
Trace with_costing_views(const Trace& trace) {
  TraceData data = trace.data();
  for (Op& op : data.ops)
    if (op.duration == Nanos{}) op.duration = 7_us;
  return Trace{std::move(data)};
}

/// Checks that the policy `name` and the scan carry out the same plan.
/// @return  how many versions were evicted
std::int64_t compare(const std::string& name, const std::function<std::unique_ptr<Policy>()>& scan, const Trace& trace,
                     const char* assumed, double fraction) {
  RunSpec spec;
  spec.pool = "ideal";
  spec.assume = Assumptions::find(assumed);
  spec.overhead_limit = 500.0;
  const double peak = static_cast<double>(ideal_peak(trace, spec.assume).count());
  spec.capacity = Bytes{static_cast<std::int64_t>(fraction * peak)};
  const Result indexed = run(trace, spec, find_policy(name).make(Options{name, {}, {}}));
  const Result scanned = run(trace, spec, scan());
  CHECK(indexed.outcome == scanned.outcome);
  CHECK((indexed.realised == scanned.realised));
  return indexed.totals.eviction_count;
}

void compare_on_random_traces(const std::string& name, const std::function<std::unique_ptr<Policy>()>& scan,
                              std::uint64_t seeds, int growth) {
  std::int64_t evictions = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Trace trace = random_trace(seed, 30 + growth * static_cast<int>(seed));
    for (const bool views_cost : {false, true})
      for (const char* assumed : {"", "simrd"})
        for (const double fraction : {0.3, 0.45, 0.6, 0.8}) {
          INFO(fmt::format("{} seed {} {}{} at {}x", name, seed, assumed, views_cost ? ", views cost" : "", fraction));
          evictions += compare(name, scan, views_cost ? with_costing_views(trace) : trace, assumed, fraction);
        }
  }
  CHECK(evictions > 2'000);  // otherwise the runs above test nothing
}

/// Compares on training steps. Their regions can be as large as the step.
void compare_on_training_steps(const std::string& name, const std::function<std::unique_ptr<Policy>()>& scan) {
  for (const int ops : {40, 120, 240})
    for (const char* assumed : {"", "simrd"})
      for (const double fraction : {0.35, 0.4, 0.45, 0.5, 0.7}) {
        INFO(fmt::format("{} training step of {} ops, {} at {}x", name, ops, assumed, fraction));
        compare(name, scan, training_trace(ops), assumed, fraction);
      }
}

void compare(const std::string& name, const std::function<std::unique_ptr<Policy>()>& scan) {
  compare_on_random_traces(name, scan, 12, 25);
  compare_on_training_steps(name, scan);
}

}  // namespace

TEST_CASE("dtr-local decides as a scan does") {
  compare("dtr-local", [] { return std::make_unique<Scan>(); });
}

TEST_CASE("dtr-eq decides as a scan over plain classes does") {
  compare("dtr-eq", [] { return std::make_unique<ScanEq>(); });
}

TEST_CASE("dtr decides as a scan over plain regions does") {
  compare("dtr", [] { return std::make_unique<ScanRegions>(false); });
}

TEST_CASE("evicted regions cost as much as plain regions, and at least their bounds") {
  const auto check = [] { return std::make_unique<CheckRegions>(); };
  compare_on_random_traces("dtr", check, kOptimised ? 150 : 40, 2);
  compare_on_training_steps("dtr", check);
}

TEST_CASE("msps decides as a scan over plain regions does") {
  compare("msps", [] { return std::make_unique<ScanRegions>(true); });
}

}  // namespace tidepool::dtr_scan_test
