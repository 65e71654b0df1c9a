#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/search/answering_planner.hpp"
#include "policies/planning/search/early_drops.hpp"
#include "policies/planning/search/plan_answer.hpp"
#include "policies/planning/search/pooled_policy.hpp"
#include "policies/planning/search/remat_search.hpp"
#include "policies/planning/search/rerun_answer.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

/// Recomputation for an offline trace, whose future is known, on real addresses. The answer is the best of many
/// candidates; RecomputeSearch judges each by full simulation. Candidates are dropping by next use, with and without
/// the versions that minimum cuts keep until the hardest instants, and some published policies. So the answer is never
/// worse than a candidate that was tried in the same run.
///
/// On a pool that is one arena (best-fit, first-fit) it also decides addresses. The search counts bytes only, up to a
/// limit. The lives of places under its best answers are packed offline; the limit is lowered a few times, so that they
/// fit the capacity. The run follows the answer and these places, so fragmentation costs memory only if the packing is
/// not perfect. Some candidates are also tried with the pool's own addresses.
///
/// If no op writes in place and bytes are counted, schedules of runs are searched too (see search_reruns).
///
/// With learn=on it is an online policy: in the first iteration it acts as dtr-eq does. Later iterations know the
/// future, since the program repeats itself.
class TideRemat final : public AnsweringPlanner {
 public:
  explicit TideRemat(const Options& options)
      : effort_{number_of("tide-remat", options, "effort", 1e9) / 100},
        places_{options.flag("places")},
        learns_{options.flag("learn")} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const bool ruled = rerun_rules(spec.assume) != RerunRules{};
    Maker answer = ruled ? unruled(trace, spec) : search(trace, spec);
    if (!learns_)
      if (std::optional<PlanAnswer> faster =
              rerun_answer(trace, spec, effort_, ruled ? no_result(trace, spec) : result_of(answer(), trace, spec)))
        answer = std::move(faster->make);
    return answer_with(std::move(answer), trace, spec);
  }

 private:
  Maker search(const Trace& trace, const RunSpec& spec) {
    const auto search = std::make_shared<RecomputeSearch>(trace, spec, effort_, learns_ ? "dtr-eq" : "");
    const std::optional<Bytes> granule = places_ && !learns_ ? granule_of(spec.pool) : std::nullopt;
    if (granule) return place_too(search, trace, spec, *granule);
    if (learns_ && spec.iterations == 1) return chosen(search, {.policy = "dtr-eq"}, spec);
    const std::vector<Tried> best = search->search({spec.capacity});
    return chosen(search, best.empty() ? Candidate{} : best.front().candidate, spec);
  }

  static Result result_of(std::unique_ptr<Policy> policy, const Trace& trace, const RunSpec& spec) {
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(std::move(policy));
    return simulate_under(trace, spec, std::move(policies), false);
  }

  /// The answer if rules limit which ops may run again. Online answers ignore such rules, so replay() may refuse it.
  Maker unruled(const Trace& trace, const RunSpec& spec) const {
    return chosen(std::make_shared<RecomputeSearch>(trace, spec, effort_, ""), {}, spec);
  }
  static Result no_result(const Trace& trace, const RunSpec& spec) {
    Result none;
    none.outcome = Outcome::kOutOfMemory;
    none.baseline = baseline_time(trace, spec.machine.launch);
    return none;
  }

  static Maker chosen(const std::shared_ptr<RecomputeSearch>& search, const Candidate& candidate, const RunSpec& spec) {
    return [search, candidate, capacity = spec.capacity] { return search->answer(candidate, capacity); };
  }

  /// The best answer whose places fit: with places of its own, or with the pool's.
  Maker place_too(const std::shared_ptr<RecomputeSearch>& search, const Trace& trace, const RunSpec& spec,
                  Bytes granule) {
    const Trying here{spec.capacity};
    const Candidate simple;
    std::optional<Tried> best = search->attempt(simple, here, std::nullopt);
    if (best && search->nothing_lost(best->makespan)) return chosen(search, simple, spec);
    const std::optional<Placed> placed = find_placed(*search, trace, spec, granule);
    for (const char* name : {"", "coop", "dte", "dtr-eq", "msps"}) {
      if (effort_ < kLittle && best) break;
      std::optional<Nanos> limit = best ? std::optional{best->makespan} : std::nullopt;
      if (placed && (!limit || placed->makespan < *limit)) limit = placed->makespan;
      if (std::optional<Tried> tried = search->attempt({.policy = name}, here, limit)) best = std::move(tried);
    }
    if (placed && (!best || placed->makespan <= best->makespan)) return [placed = *placed] { return placed.answer(); };
    if (!best)
      if (const std::vector<Tried> found = search->search(here); !found.empty()) best = found.front();
    return chosen(search, best ? best->candidate : simple, spec);
  }

  struct Placed {
    Nanos makespan;
    std::shared_ptr<const std::vector<EarlyDrop>> drops;
    std::shared_ptr<const std::vector<FollowedPool::Place>> places;

    std::unique_ptr<Policy> answer() const {
      const auto served = std::make_shared<std::size_t>();
      return std::make_unique<PooledPolicy>(std::make_unique<ScriptedDrops>(drops, served),
                                            std::make_unique<FollowedPool>(places, served));
    }
  };

  /// The effort for minimise(). A few large lives are hard to pack and quick to search; many small ones fit easily.
  static double packing_effort(const PlaceLog& log) { return log.lives.size() < 1'000 ? 25 : 2; }

  /// The fastest of the promising answers whose places fit the capacity. The limit on the sum of bytes is lowered as
  /// long as that may find a faster one.
  std::optional<Placed> find_placed(RecomputeSearch& search, const Trace& trace, const RunSpec& spec,
                                    Bytes granule) const {
    const Bytes room = granule * (spec.capacity / granule);
    const std::vector<Tried> promising = search.search({room, granule});
    constexpr int kLimits = 6;
    Bytes limit = room;
    std::optional<Placed> best;
    std::size_t packings = effort_ < kLittle ? 3 : std::clamp<std::size_t>(60'000 / (trace.ops().size() + 1), 6, 36);
    for (int i = 0; i < kLimits; ++i) {
      const Trying where{limit, granule};
      const std::vector<Tried> ordered = limit == room ? promising : search.attempt_all(promising, where);
      std::optional<Bytes> first_height;
      for (const Tried& each : ordered) {
        if ((best && each.makespan >= best->makespan) || packings == 0) break;
        --packings;
        std::optional<RecomputeSearch::Record> record = search.record(each.candidate, where);
        if (!record) continue;
        const std::vector<EarlyDrop> drops = drop_early(trace, record->plan, record->log);
        const FoundPlaces places = find_places(record->log, granule, room, effort_ * packing_effort(record->log));
        if (places.height <= room)
          if (std::optional<Placed> placed = confirmed(trace, spec, drops, places, record->log))
            if (!best || placed->makespan < best->makespan) best = std::move(placed);
        if (!first_height) first_height = places.height;
      }
      if (!first_height) break;  // no answer ends well, or none is faster
      limit -= std::max((*first_height - room) / 2, room / 500);
    }
    return best;
  }

  /// Replays the answer with its places. Returns none if the run differs from the recorded one.
  static std::optional<Placed> confirmed(const Trace& trace, const RunSpec& spec, const std::vector<EarlyDrop>& drops,
                                         const FoundPlaces& places, const PlaceLog& log) {
    std::vector<FollowedPool::Place> followed;
    for (std::size_t i = 0; i < log.lives.size(); ++i)
      followed.push_back({places.offsets[i], log.lives[i].size, log.lives[i].after_temporaries});
    Placed placed{{},
                  std::make_shared<const std::vector<EarlyDrop>>(drops),
                  std::make_shared<const std::vector<FollowedPool::Place>>(std::move(followed))};
    const Result result = result_of(placed.answer(), trace, spec);
    if (result.outcome != Outcome::kOk) return std::nullopt;
    placed.makespan = result.totals.makespan;
    return placed;
  }

  static constexpr double kLittle = RecomputeSearch::kLittle;

  double effort_;
  bool places_, learns_;
};

const RegisterPolicy kTideRemat{
    {.name = "tide-remat",
     .kind = PolicyKind::kRemat,
     .summary = "the best of next use, minimum cuts and published policies, judged by simulation; plans places too",
     .paper = "Tidepool; compare Kirisame et al., ICLR 2021, and Zhang et al., Coop, NeurIPS 2023",
     .options = {{"effort", "100", "number", "how much is tried: 1 = little, 100 = about a second for 10^4 ops"},
                 {"places", "on", "on/off", "whether it decides the addresses on best-fit and first-fit, too"},
                 {"learn", "off", "on/off",
                  "act as dtr-eq in the first iteration, and know the future only in later ones"}},
     .make = [](const Options& options) { return std::make_unique<TideRemat>(options); }}};

}  // namespace
}  // namespace tidepool
