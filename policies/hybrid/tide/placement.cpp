#include "policies/hybrid/tide/placement.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/search/delegating_policy.hpp"
#include "policies/planning/search/pooled_policy.hpp"

namespace tidepool {

namespace {

/// Follows a draft and records where iterations begin. The first iteration counts as a change of mind, so that no cycle
/// begins with places that only the first iteration has.
class NotesBegins final : public DelegatingPolicy {
 public:
  NotesBegins(std::unique_ptr<Policy> policy, std::shared_ptr<PlaceLog> log)
      : policy_{std::move(policy)}, log_{std::move(log)} {
    delegate_to(*policy_);
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override { return policy_->plan(trace, spec); }
  void start(const View& view) override {
    log_->begins.push_back({log_->lives.size(), log_->answers.size()});
    DelegatingPolicy::start(view);
  }
  std::int64_t changes_of_mind() const override {
    return (log_->begins.size() > 1 ? 1 : 0) + DelegatingPolicy::changes_of_mind();
  }

 private:
  std::unique_ptr<Policy> policy_;
  std::shared_ptr<PlaceLog> log_;
};

/// The cycle between the starts of two iterations. None unless each buffer has one place at both, or at neither.
std::optional<PlaceLog::Cycle> cycle_between(const Trace& trace, const PlaceLog& log, const PlaceLog::Begin& first,
                                             const PlaceLog::Begin& last) {
  PlaceLog::Cycle cycle{first, last, std::vector<std::uint32_t>(log.lives.size(), PlaceLog::kNever), {}};
  std::vector<std::uint32_t> at_first(trace.buffers().size(), PlaceLog::kNever), at_last = at_first;
  std::uint32_t life = 0;
  for (const PlaceLog::Answer& each : log.answers) {
    if (!each.given) continue;
    const std::uint32_t i = life++;
    const auto note = [&](std::size_t begin, std::vector<std::uint32_t>& at) {
      if (i >= begin || log.lives[i].end <= begin) return true;
      return std::exchange(at[trace.version(each.version).buffer.index()], i) == PlaceLog::kNever;
    };
    if (!note(first.lives, at_first) || !note(last.lives, at_last)) return std::nullopt;
  }
  for (std::size_t b = 0; b < at_first.size(); ++b) {
    const std::uint32_t old = at_first[b], now = at_last[b];
    if (old == now) continue;
    if (old == PlaceLog::kNever || now == PlaceLog::kNever || now < log.lives[old].end ||
        log.lives[old].size != log.lives[now].size)
      return std::nullopt;
    cycle.twin[now] = old;
  }
  cycle.at_start = std::move(at_first);
  return cycle;
}

}  // namespace

std::unique_ptr<Policy> PlacedDraft::answer() const {
  return std::make_unique<PooledPolicy>(follow_draft(draft, on_demand), std::make_unique<RepeatedPool>(places));
}

Placer::Counted Placer::count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit) {
  RunSpec counted = spec_;
  counted.capacity = limit;
  counted.overhead_limit = overhead_limit;
  auto log = std::make_shared<PlaceLog>();
  std::unique_ptr<Policy> policy = follow_draft(draft, on_demand_);
  if (spec_.steady) policy = std::make_unique<NotesBegins>(std::move(policy), log);
  Result result = judge(trace_, counted,
                        std::make_unique<PooledPolicy>(
                            std::move(policy), std::make_unique<CountedPool>(limit, granule_, log), nullptr, log));
  const auto first = static_cast<std::size_t>(result.cycle.lead_in),
             last = first + static_cast<std::size_t>(result.cycle.iterations);
  if (spec_.steady && result.outcome == Outcome::kOk && result.cycle.settled && last < log->begins.size())
    log->cycle = cycle_between(trace_, *log, log->begins[first], log->begins[last]);
  return {std::move(result), std::move(log)};
}

bool Placer::searches(const PlaceLog& log) {
  constexpr std::size_t kMany = 8'000;  // lives: with more a search takes seconds, and one pass is nearly as low
  return log.lives.size() <= kMany;
}

FoundPlaces Placer::pack(const PlaceLog& log, Packing packing) const {
  if (!searches(log)) return find_places(log, granule_, spec_.capacity, 0);
  // Few large lives are hard to pack and quick to search.
  const double few = 8'000.0 / static_cast<double>(log.lives.size() + 1);
  const double effort = packing == Packing::kThorough ? std::clamp(few, 2.0, 40.0) : std::clamp(few * 5, 20.0, 100.0);
  return find_places(log, granule_, spec_.capacity, effort);
}

Placer::Placed Placer::follow(const GapDraft& draft, const PlaceLog& log, const FoundPlaces& places) {
  Placed placed{{draft, on_demand_, {}}, {}};
  placed.draft.places =
      std::make_shared<const RepeatedPool::Places>(RepeatedPool::places_of(log, places.offsets, trace_, draft.copies));
  placed.result = judge(trace_, spec_, placed.draft.answer());
  return placed;
}

}  // namespace tidepool
