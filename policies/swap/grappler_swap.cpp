#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The swapping of TensorFlow's graph optimizer (Grappler, memory_optimizer.cc, SWAPPING_HEURISTICS). It swaps tensors
/// that are live when most memory is in use (at t_p) and are read again later, by descending
///   (t_use - t_p)^2 / uses^2 + (t_made - t_p)^2,
/// with t_use the first read after the peak and `uses` the number of reads after the peak, until the peak is below the
/// memory. A tensor is swapped out when it has been made, and its first reader waits for that copy. It is swapped in
/// separately for every reader after the peak. The trigger of a swap-in is the last op that the reader depends on and
/// that ends before a certain time: the time at which all inputs of the reader have been made, less the time in which
/// its swapped inputs are copied at 16 GB/s. There is no swap-in for a reader without such an op, for the tensor's
/// first reader, or if the trigger is not behind the previous reader. Tensors of 1024 B or less, tensors that live for
/// 1 ms or less, and parameters stay.
/// The peak is searched at most `passes` times; a tensor is considered only once.
///
/// This is not the rewriting of Meng et al. ("Training Deeper Models by GPU Memory Optimization on TensorFlow", 2017):
/// too little is known about its choice of tensors and the triggers of its copies.
///
/// Times are those of the ops without delays; TensorFlow estimates them. Sizes are sums of bytes. If all this is not
/// enough, the run is out of memory. O(passes * (ops + candidates * ops they depend on)).
class GrapplerSwap final : public Policy {
 public:
  explicit GrapplerSwap(std::int64_t passes) : passes_{passes} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty()) return {};
    circle_ = step_circle(trace);
    std::vector<std::uint32_t> all;
    for (std::int64_t pass = 0; pass < passes_; ++pass) {
      const std::vector<Bytes> load = load_without(circle_, gaps_, all);
      const auto peak = static_cast<std::uint32_t>(std::max_element(load.begin(), load.end()) - load.begin());
      if (load[peak] <= spec.capacity) break;
      const std::size_t before = gaps_.size();
      relieve(trace, peak, load[peak] - spec.capacity);
      if (gaps_.size() == before) break;
      for (std::size_t i = before; i < gaps_.size(); ++i) all.push_back(static_cast<std::uint32_t>(i));
    }
    return draft(trace);
  }

 private:
  struct Candidate {
    VersionId version;
    std::vector<std::uint32_t> uses;  ///< after the peak
    double fitness = 0;
  };

  void relieve(const Trace& trace, std::uint32_t peak, Bytes savings) {
    std::vector<Candidate> candidates = find_candidates(trace, peak);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.fitness > b.fitness; });
    std::map<std::uint32_t, std::vector<VersionId>> swapped;  // by reader
    for (const Candidate& each : candidates) {
      looked_at_.insert(each.version);
      for (const std::uint32_t use : each.uses) swapped[use].push_back(each.version);
      savings -= trace.size(each.version);
      if (savings < Bytes{}) break;
    }
    for (const auto& [reader, versions] : swapped) {
      const std::optional<std::uint32_t> trigger = trigger_of(trace, reader, versions);
      if (!trigger) continue;
      for (const VersionId v : versions) {
        const auto readers = trace.readers(v);
        const auto at = std::lower_bound(readers.begin(), readers.end(), OpId{reader});
        if (at == readers.begin()) continue;  // no earlier reader can wait for the swap-out
        const std::uint32_t last = std::prev(at)->value();
        if (*trigger <= last) continue;  // the swap-in would begin before the last use
        gaps_.push_back({.out = v, .in = v, .size = trace.size(v), .release = last, .due = *trigger + 1});
      }
    }
  }

  std::vector<Candidate> find_candidates(const Trace& trace, std::uint32_t peak) const {
    constexpr Bytes kSmall{1024};
    constexpr Nanos kShort{1'000'000};
    std::vector<Candidate> candidates;
    for (std::uint32_t op = 0; op < peak; ++op)
      for (const VersionId v : trace.made(OpId{op})) {
        const auto readers = trace.readers(v);
        if (trace.size(v) <= kSmall || readers.empty() || readers.back().value() <= peak || looked_at_.contains(v))
          continue;
        const Nanos made = circle_.at(op), at_peak = circle_.at(peak);
        if (circle_.at(readers.back().value() + std::size_t{1}) - made <= kShort) continue;
        Candidate each{v, {}, 0};
        for (const OpId reader : readers)
          if (reader.value() > peak) each.uses.push_back(reader.value());
        const double until = static_cast<double>((circle_.at(each.uses.front()) - at_peak).count());
        const double since = static_cast<double>((at_peak - made).count());
        each.fitness = std::pow(until / static_cast<double>(each.uses.size()), 2) + since * since;
        candidates.push_back(std::move(each));
      }
    return candidates;
  }

  /// The op after which a reader's swapped inputs are swapped in.
  std::optional<std::uint32_t> trigger_of(const Trace& trace, std::uint32_t reader,
                                          const std::vector<VersionId>& swapped) const {
    const auto end = [&](OpId op) { return circle_.at(op.index() + 1); };
    Nanos by;
    Bytes bytes;
    for (const VersionId v : swapped) bytes += trace.size(v);
    std::vector<OpId> open;
    const auto sources = [&](OpId op, bool all) {
      for (const Use& use : trace.uses(op)) {
        if (!use.in.valid()) continue;
        const VersionId root = trace.root(use.in);
        const OpId source = trace.version(root).producer;
        if (!source.valid() || source >= op) continue;
        if (all) by = std::max(by, end(source));
        if (!all || std::find(swapped.begin(), swapped.end(), root) == swapped.end()) open.push_back(source);
      }
    };
    sources(OpId{reader}, true);
    by -= Nanos{bytes.count() / 16};
    std::set<OpId> seen;
    std::optional<std::uint32_t> best;
    while (!open.empty()) {
      const OpId op = open.back();
      open.pop_back();
      if (!seen.insert(op).second) continue;
      if (end(op) < by)
        best = std::max(best.value_or(0), op.value());
      else
        sources(op, false);
    }
    return best;
  }

  std::vector<Action> draft(const Trace& trace) const {
    CopyDraft copies{trace};
    std::set<VersionId> copied;
    for (const Gap& gap : gaps_) {
      if (!copied.insert(gap.out).second) continue;
      copies.copy_out(trace.version(gap.out).producer.value() + 1, gap.out);
      copies.await(trace.readers(gap.out).front().value(), gap.out);
    }
    for (const Gap& gap : gaps_) {
      copies.release(gap.release + 1, gap.out);
      copies.copy_back(gap.due, gap.out);
    }
    return copies.take();
  }

  std::int64_t passes_;
  StepCircle circle_;
  std::vector<Gap> gaps_;  // from the last use to the issue of the swap-in
  std::set<VersionId> looked_at_;
};

const RegisterPolicy kGrapplerSwap{
    {.name = "grappler-swap",
     .kind = PolicyKind::kSwap,
     .summary = "copies to the host what was made and is read again farthest from the peak",
     .paper = "TensorFlow, core/grappler/optimizers/memory_optimizer.cc (SWAPPING_HEURISTICS)",
     .options = {{"passes", "25", "number", "most searches for the peak; TensorFlow makes 25"}},
     .make = [](const Options& options) {
       return std::make_unique<GrapplerSwap>(
           count_of<std::int64_t>("grappler-swap", options, "passes", 1'000'000'000, 0));
     }}};

}  // namespace
}  // namespace tidepool
