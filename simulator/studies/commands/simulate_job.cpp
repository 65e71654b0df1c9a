#include "simulator/studies/commands/simulate_job.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "simulator/options.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/commands/sweep_run.hpp"
#include "simulator/studies/ranks/job_plans.hpp"
#include "simulator/studies/ranks/job_run.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/summary.hpp"

namespace tidepool {

namespace {

const std::string kNotGiven(1, '\0');  // the text of an option that is not on the command line

std::vector<std::size_t> parse_ranks(const std::optional<std::string>& text) {
  std::vector<std::size_t> ranks;
  if (!text) return ranks;
  for (const std::string& each : split_list(*text)) {
    const std::optional<std::int64_t> rank = parse_whole(each);
    if (!rank || *rank < 0) refuse("--rank: '{}' is no rank; expected whole numbers, as in 0,3", excerpt(each));
    ranks.push_back(static_cast<std::size_t>(*rank));
  }
  if (ranks.empty()) refuse("--rank: no rank; expected whole numbers, as in 0,3");
  return ranks;
}

double parse_scale(const std::optional<std::string>& text) {
  if (!text) return 1;
  constexpr double kMost = 1000;
  char* end = nullptr;
  const double factor = std::strtod(text->c_str(), &end);
  if (text->empty() || *end != '\0' || !(factor >= 0) || factor > kMost)
    refuse("--scale: '{}' is no factor; expected a number from 0 to {}, as in 0.5", excerpt(*text), kMost);
  return factor;
}

OwnTime parse_own_time(const std::optional<std::string>& text) {
  if (!text || text == "all") return OwnTime::kAll;
  if (text == "ops") return OwnTime::kOps;
  if (text == "host") return OwnTime::kHost;
  refuse("--of: '{}'; expected all, ops or host", excerpt(*text));
}

/// Whether an option of a run was given, so that the ranks run policies.
bool asks_for_plans(const GridText& grid) {
  bool given = grid.first;
  for_each_text(grid, [&](const char*, const std::string& text) { given = given || text != kNotGiven; });
  return given;
}

void refuse_repeated(const GridText& grid) {
  const auto refuse_option = [](const char* name) {
    refuse("--{}: the ranks of a job run one step alone; expected the trace of one rank", name);
  };
  if (grid.assume != kNotGiven) refuse_option("assume");
  if (grid.iterations != kNotGiven) refuse_option("iterations");
  if (grid.count_search) refuse_option("count-search");
}

/// The name of a rank's plan file: "run.rank2.plan" for "run.plan".
std::string plan_name(const std::filesystem::path& plans, std::size_t rank) {
  const std::filesystem::path outer = plans.extension() == ".zst" ? plans.stem() : plans.filename();
  const std::string ends = plans.filename().string().substr(outer.stem().string().size());
  return (plans.parent_path() / fmt::format("{}.rank{}{}", outer.stem().string(), rank, ends)).string();
}

/// Writes each rank's plan for its recorded trace. @return  false if a rank has none
bool write_plans(const std::string& path, const LoadedJob& job, const JobPlans& plans) {
  if (!plans.makespan) {
    say("{}: not written; not all ranks have a plan\n", path);
    return false;
  }
  for (std::size_t rank = 0; rank < plans.ranks.size(); ++rank) {
    const RankPlan& plan = plans.ranks[rank];
    const Totals predicted = replay(job.traces[rank], plan.spec, plan.result.realised);
    write_plan(plan_name(path, rank), {job.traces[rank].hash(), plan.spec, predicted, plan.result.realised});
  }
  return true;
}

int run_plans(const LoadedJob& job, const std::string& path, const JobChange& change, GridText grid,
              std::size_t threads, const std::string& plan_out, bool json) {
  grid.first = true;
  const auto spec_of = [&](const Trace& trace) {
    const Grid runs{grid, trace};
    if (runs.size() != 1) refuse("the lists ask for {} runs; expected one run of the job", runs.size());
    return runs.at(0);
  };
  const RunSpec first = spec_of(job.traces.front());  // refuses wrong options before any plan is made
  if (allowed_by(first.policy).find("order") != std::string::npos)
    refuse("--policy: '{}' puts ops into another order; the ranks of a job keep theirs", first.policy.text);
  const JobPlans plans = plan_job(job, path, change, spec_of, threads);
  if (json)
    fmt::print("{}\n", plans_json(path, plans));
  else
    print_plans(job, path, plans);
  return plan_out.empty() || write_plans(plan_out, job, plans) ? 0 : 1;
}

}  // namespace

void declare_grid_options(const CommandLine& app, GridText& text) {
  app.add_option("--pool", text.pool, "the pool that places buffers: NAME or NAME(option=value), or all")
      .capture_default_str();
  app.add_option("--policy", text.policy, "the policy that frees memory: NAME, or A+B: B where A has no answer, or all")
      .capture_default_str();
  app.add_option("--capacity", text.capacity,
                 "16GiB, 0.5x or 50% (of the trace's peak), 0.3x..1.0x/8, none (no limit) or machine (its memory)")
      .capture_default_str();
  app.add_option("--machine", text.machine, "NAME (tidepool machines lists them) or a machine file")
      .capture_default_str();
  app.add_option("--seed", text.seed, "for policies that draw random numbers: 7, 1..3").capture_default_str();
  app.add_option("--assume", text.assume, "what one paper's own simulator assumed: checkmate, moccasin or simrd");
  app.add_option("--overhead-limit", text.overhead_limit,
                 "end a run whose time passes this multiple of the baseline (default: 10; none: never)");
  app.add_option(
      "--iterations", text.iterations,
      fmt::format("try up to so many iterations, {} at least, until one begins as an earlier one did; times and "
                  "counts are means over those between, or, if none does, over the last half",
                  kUsualIterations));
  app.add_flag("--first", text.first,
               "run one first step alone, which begins with weights where the policy wants them, instead of the steady "
               "state of a step that repeats");
  app.add_flag("--count-search", text.count_search,
               "add the wall time that policies take to decide to the makespan: differs from run to run");
}

std::vector<std::string> seldom_grid_options(std::vector<std::string> more) {
  more.insert(more.end(), {"--seed", "--assume", "--iterations", "--count-search", "--overhead-limit", "--scale",
                           "--rank", "--of", "--collectives", "--threads"});
  return more;
}

void forget_defaults(GridText& grid) {
  for_each_text(grid, [](const char*, std::string& text) { text = kNotGiven; });
}

GridText with_defaults(GridText grid) {
  std::vector<std::string> usual;
  const GridText defaults;
  for_each_text(defaults, [&](const char*, const std::string& text) { usual.push_back(text); });
  auto next = usual.begin();
  for_each_text(grid, [&](const char*, std::string& text) {
    if (text == kNotGiven) text = *next;
    ++next;
  });
  return grid;
}

void declare_job_options(const CommandLine& app, JobText& text) {
  app.add_option("--scale", text.scale,
                 "of a job: multiply the ranks' own time by this factor, but not the time that they wait");
  app.add_option("--rank", text.ranks, "of a job: the ranks that --scale applies to, as in 0,3 (default: all)");
  app.add_option("--of", text.of, "of a job: the times that --scale applies to: all (default), ops or host");
  app.add_option("--collectives", text.collectives,
                 "of a job: take the times of all-reduces from a table of measured times, FILE.csv or FILE.csv:DEVICE")
      .type_name("TABLE");
  app.add_option("-j,--threads", text.threads,
                 "of a job: ranks that run at the same time (default: one for each processor)");
}

void refuse_job_options(const JobText& text, const std::string& trace) {
  for (const auto& [name, value] : {std::pair{"--scale", &text.scale},
                                    {"--rank", &text.ranks},
                                    {"--of", &text.of},
                                    {"--collectives", &text.collectives},
                                    {"-j", &text.threads}})
    if (*value) refuse("{}: {} is no job file; this option needs one", name, trace);
}

JobChange change_of(const JobText& text) {
  JobChange change{.ranks = parse_ranks(text.ranks),
                   .factor = parse_scale(text.scale),
                   .what = parse_own_time(text.of),
                   .table = text.collectives.value_or("")};
  for (const auto& [name, value] : {std::pair{"--rank", &text.ranks}, {"--of", &text.of}})
    if (*value && !text.scale) refuse("{}: applies to --scale, which is not given; expected both", name);
  if (text.collectives && text.collectives->empty()) refuse("--collectives: no file; expected a table");
  return change;
}

int simulate_job_file(const std::string& path, const GridText& grid, const JobText& text, const std::string& plan_out,
                      bool json) {
  refuse_repeated(grid);
  const bool plans = asks_for_plans(grid);
  if (!plan_out.empty() && !plans) refuse("--plan-out: the ranks run as recorded; expected a --policy");
  if (!plan_out.empty()) require_writable(plan_name(plan_out, 0));
  const JobChange change = change_of(text);
  const auto threads = static_cast<std::size_t>(parse_threads(text.threads.value_or("")));
  const LoadedJob job = load_job(path);
  if (!job.traces.empty() && !error_of_times(job.traces.front()).empty())
    say("{}: {}\n", path, caveat_of_times(job.traces.front()));
  if (plans) return run_plans(job, path, change, with_defaults(grid), threads, plan_out, json);
  const JobResult result = run_job(job, path, change, threads);
  if (json)
    fmt::print("{}\n", job_json(job, path, result));
  else
    print_job(job, path, result);
  return 0;
}

}  // namespace tidepool
