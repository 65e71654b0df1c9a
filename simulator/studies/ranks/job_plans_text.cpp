// Plans of a job's ranks for people, and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "simulator/studies/ranks/job_plans.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

double percent_above(Nanos time, Nanos base) {
  return base == Nanos{} ? 0 : 100 * (static_cast<double>(time.count()) / static_cast<double>(base.count()) - 1);
}

Json number(const std::optional<Nanos>& time) { return time ? Json(time->count()) : Json(nullptr); }

std::string hidden_text(const RankPlan& plan) {
  if (plan.copies == Nanos{}) return "-";
  const double shown = static_cast<double>(plan.exposed.count()) / static_cast<double>(plan.copies.count());
  return fmt::format("{:.1f} %", 100 * (1 - shown));
}

}  // namespace

void print_plans(const LoadedJob& job, const std::string& path, const JobPlans& plans) {
  const RunSpec& spec = plans.ranks.front().spec;
  fmt::print("{}: {}, {}; {} on {}, {}\n", path, counted(static_cast<std::int64_t>(plans.ranks.size()), "rank"),
             counted(static_cast<std::int64_t>(job.job.collectives.size()), "collective"), spec.policy.text,
             spec.pool.text, spec.machine.name);
  if (plans.makespan)
    fmt::print("step        {}, {} without limits: {:+.2f} %\n", to_text(*plans.makespan), to_text(plans.baseline),
               percent_above(*plans.makespan, plans.baseline));
  else
    fmt::print("step        not all ranks have a plan; {} without limits\n", to_text(plans.baseline));
  fmt::print("bound       {}\n", plans.bound ? to_text(*plans.bound) + ": no such plans let the job end earlier"
                                             : "no such plan exists for some rank");
  fmt::print("\n{:>10}  {:>10} {:>10} {:<13} {:>10} {:>10} {:>7} {:>10} {:>10} {:>10}\n", "rank", "tensors", "memory",
             "", "to host", "from host", "hidden", "again", "waited", "now waits");
  for (std::size_t i = 0; i < plans.ranks.size(); ++i) {
    const RankPlan& plan = plans.ranks[i];
    const Totals& totals = plan.result.totals;
    fmt::print("{:>10}  {:>10} {:>10} {:<13} {:>10} {:>10} {:>7} {:>10} {:>10} {:>10}\n", i, to_text(plan.ideal_peak),
               plan.spec.capacity == kNoLimit ? "no limit" : to_text(plan.spec.capacity), to_text(plan.result.outcome),
               to_text(totals.swap_out), to_text(totals.swap_in), hidden_text(plan), to_text(totals.recompute),
               to_text(plan.waited), plans.makespan ? to_text(plan.waits) : "-");
  }
  for (std::size_t i = 0; i < plans.ranks.size(); ++i)
    if (const std::string& message = plans.ranks[i].result.message; !message.empty())
      fmt::print("rank {}: {}\n", i, message);
}

std::string plans_json(const std::string& path, const JobPlans& plans) {
  const RunSpec& spec = plans.ranks.front().spec;
  Json json{{"job", path},
            {"policy", spec.policy.text},
            {"pool", spec.pool.text},
            {"machine", spec.machine.name},
            {"baseline_ns", plans.baseline.count()},
            {"makespan_ns", number(plans.makespan)},
            {"bound_ns", number(plans.bound)},
            {"ranks", Json::array()}};
  for (const RankPlan& plan : plans.ranks) {
    const Totals& totals = plan.result.totals;
    Json rank{{"like_rank", plan.like},
              {"outcome", to_text(plan.result.outcome)},
              {"message", plan.result.message},
              {"ideal_peak_bytes", plan.ideal_peak.count()},
              {"capacity_bytes", plan.spec.capacity == kNoLimit ? Json(nullptr) : Json(plan.spec.capacity.count())},
              {"peak_bytes", totals.peak.count()},
              {"swap_out_bytes", totals.swap_out.count()},
              {"swap_in_bytes", totals.swap_in.count()},
              {"recompute_ns", totals.recompute.count()},
              {"waited_without_limits_ns", plan.waited.count()}};
    if (plans.makespan) {
      rank["waited_ns"] = plan.waits.count();
      rank["end_ns"] = plan.ends.count();
      rank["copy_ns"] = plan.copies.count();
      rank["exposed_copy_ns"] = plan.exposed.count();
    }
    json["ranks"].push_back(std::move(rank));
  }
  return json_text(json);
}

}  // namespace tidepool
