// tidepool fit: verdict on whether a job fits a device, the margin, and the holders of the memory.
#include "simulator/studies/fit/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "simulator/studies/audit/tune.hpp"
#include "simulator/studies/commands/fit_advice.hpp"
#include "simulator/studies/commands/fit_batches.hpp"
#include "simulator/studies/commands/fit_ranks.hpp"
#include "simulator/studies/commands/fit_stated.hpp"
#include "simulator/studies/commands/fitted_job.hpp"
#include "simulator/studies/fit/convolution_workspaces.hpp"
#include "simulator/studies/fit/dry_recording.hpp"
#include "simulator/studies/fit/largest_batch.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/job/job.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"
#include "traces/step/event_names.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kMostBatch = std::int64_t{1} << 20;

struct FitArguments {
  std::vector<std::string> words;  ///< the positional words
  std::size_t behind_dashes = 0;   ///< number of words after --; they are the last ones
  std::string none;                ///< argument that gets no word; with it, CLI11 also reads the words after --
  /// The words are either the trace or the command.
  std::string trace;
  std::vector<std::string> command;
  std::string device, capacity, pool;
  DeviceBudget budget;  ///< of `device`, with `capacity` if it is given
  int seconds = 300;
  std::size_t show = 10;
  bool batch = false, json = false;
};

using Json = nlohmann::ordered_json;

double gib(Bytes size) { return static_cast<double>(size.count()) / (1 << 30); }

/// Records a job again whose sizes were assumed, with the other extreme. If that fails, the first recording stands
/// alone.
void record_worst(const FitArguments& arguments, FittedJob& job) {
  if (!job.trace.data().meta.contains("assumed_sizes") || job.stopped || !job.failure.empty()) return;
  try {
    auto worst = record_dry(job.command, arguments.budget, arguments.seconds, {.routing = "worst"});
    if (worst && !worst->stopped && worst->failure.empty()) job.worst = std::move(worst->traces.front());
  } catch (const InputError&) {  // nothing was recorded
  }
}

EventNames events_of(const FittedJob& job) { return {job.trace, job.history ? &*job.history : nullptr}; }

/// Words before -- are one trace, words after it a command.
void tell_apart(FitArguments& arguments) {
  const auto behind = arguments.words.end() - static_cast<std::ptrdiff_t>(arguments.behind_dashes);
  const std::vector<std::string> before{arguments.words.begin(), behind};
  arguments.command.assign(behind, arguments.words.end());
  if (before.empty() && arguments.command.empty())
    refuse("fit: nothing to judge; expected a trace or a snapshot, or a command after --, as in -- python3 train.py");
  if (before.size() > 1)
    refuse("{}: {} words; expected one trace or snapshot, or a command after --, as in -- python3 train.py",
           fmt::join(before, " "), before.size());
  if (!before.empty() && !arguments.command.empty())
    refuse("{} -- {}: a trace and a command; expected one of them", before[0], fmt::join(arguments.command, " "));
  if (before.empty()) return;
  std::error_code unknown;
  if (before[0].ends_with(".py") && std::filesystem::is_regular_file(before[0], unknown))
    refuse("{}: a Python script; expected a trace or a snapshot, or a command after --, as in -- python3 {}", before[0],
           before[0]);
  arguments.trace = before[0];
}

Fit fit_of(const FitArguments& arguments, const FittedJob& job) {
  const std::string &pool = arguments.pool, own = pool_of(stated_memory(job.trace).settings);
  const bool as_recorded = job.recorded && (pool.empty() || pool == own);
  try {
    Fit fit = predict_fit(job.trace, arguments.budget, pool, as_recorded ? job.recorded->most_reserved : Bytes{});
    if (job.worst) widen(fit, predict_fit(*job.worst, arguments.budget, pool));
    return fit;
  } catch (const InputError& error) {
    throw error.at(job.name);
  }
}

/// The verdict on a job. A command whose recording leaves it open is run again, with as much memory as there is.
Fit settled_fit_of(const FitArguments& arguments, const FittedJob& job) {
  Fit fit = fit_of(arguments, job);
  if (!fit.untried || job.command.empty() || job.stopped || !job.failure.empty()) return fit;
  const auto again = record_dry(job.command, arguments.budget, arguments.seconds,
                                {.capacity = fmt::format("{}B", fit.untried->count())});
  if (!again || again->stopped) return fit;
  const bool died = stated_memory(again->traces.front()).ran_out;
  if (died || again->failure.empty()) settle(fit, died);
  return fit;
}

/// Whether a training step is missing for a verdict. A recorded part that is too large needs none: the job does not
/// fit. Nor does a recorded job that ran to its end: it may only infer.
bool cannot_tell(const FittedJob& job, const Fit& fit) {
  if (fit.unknown_beyond) return true;
  if (job.command.empty()) return fit.fits && lacks_training(job.trace);
  return fit.fits && (job.stopped || !job.failure.empty()) && !has_training(job.trace);
}

/// "the job ended before a training step".
std::string untrained(const FitArguments& arguments, const FittedJob& job) {
  if (stated_memory(job.trace).ran_out) return "the job ran out of memory where it was recorded";
  if (job.command.empty()) return "the trace ends before a training step";
  if (job.stopped) return fmt::format("the job was stopped after {} s, before a training step", arguments.seconds);
  return "the job ended before a training step";
}

/// Notes that are printed beside the verdict, a line each: what is missing or guessed, and how the job ended.
std::vector<std::string> remarks(const FitArguments& arguments, const FittedJob& job, const Fit& fit) {
  std::vector<std::string> lines;
  const std::string until = "; what it did until then is judged";
  if (only_infers(job.trace)) lines.push_back("the job ended without a training step; this is the memory without one");
  if (cannot_tell(job, fit))
    lines.push_back(untrained(arguments, job) + (job.failure.empty() ? "" : ": " + job.failure));
  else if (job.stopped)
    lines.push_back(fmt::format("the job was stopped after {} s{}", arguments.seconds, until));
  else if (!job.failure.empty())
    lines.push_back(fmt::format("the job failed: {}{}", job.failure, until));
  if (!job.hint.empty()) lines.push_back(job.hint);
  for (std::string& note : stated_notes(fit)) lines.push_back(std::move(note));
  if (job.devices > 1)
    lines.push_back(
        fmt::format("{} devices have memory; this is about device {}, which has most records: `tidepool "
                    "import --device` keeps another one",
                    job.devices, job.recorded->device));
  const auto& meta = job.trace.data().meta;
  if (const auto lacks = meta.find("lacks"); lacks != meta.end()) lines.push_back("it lacks " + lacks->second);
  lines.insert(lines.end(), fit.notes.begin(), fit.notes.end());
  for (const std::string& line : missing_names(job.trace)) lines.push_back(line);
  return lines;
}

std::string verdict(const FitArguments& arguments, const FittedJob& job, const Fit& fit) {
  const Bytes total = fit.device->total;
  const std::string sizes = fmt::format("{:.2f} of {:.2f} GiB", gib(fit.predicted), gib(total));
  if (cannot_tell(job, fit)) return fmt::format("cannot tell: {}; until then {}", untrained(arguments, job), sizes);
  const auto doubt = [&](Bytes other) {
    if (fit.certain) return std::string{};
    if (fit.fits == (other <= total) && !fit.doubts.empty())
      return fmt::format("; not for certain, since {}", fmt::join(fit.doubts, " and "));
    return fmt::format("; not for certain, it may be {}", to_text(other));
  };
  if (fit.fits) return fmt::format("fits: {}, margin {}{}", sizes, to_text(fit.margin), doubt(fit.high));
  return fmt::format("does not fit: {}, {} too much{}", sizes, to_text(-fit.margin), doubt(fit.low));
}

Json to_json(const FitArguments& arguments, const FittedJob& job, const Fit& fit,
             const std::optional<LargestBatch>& batch) {
  const OpId at = fit.peak.op;
  Json object{{"job", job.name},
              {"device", fit.device->name},
              {"fits", cannot_tell(job, fit) ? Json(nullptr) : Json(fit.fits)},
              {"certain", fit.certain},
              {"capacity_bytes", fit.device->total.count()},
              {"predicted_bytes", fit.predicted.count()},
              {"low_bytes", fit.low.count()},
              {"high_bytes", fit.high.count()},
              {"margin_bytes", fit.margin.count()},
              {"reserved_bytes", fit.reserved.count()},
              {"context_bytes", fit.context.expected.count()},
              {"workspace_bytes", fit.workspace.count()},
              {"workspaces_recorded", fit.workspaces_recorded},
              {"convolution_workspace_bytes", fit.convolution_workspace.count()},
              {"live_bytes", fit.peak.live.count()},
              {"pool", fit.allocator.pool}};
  if (at.valid())
    object["peak_at"] = {{"op", at.index()},
                         {"name", job.trace.text(job.trace.op(at).name)},
                         {"module", job.trace.text(job.trace.op(at).module)},
                         {"line", job.trace.text(job.trace.op(at).line)},
                         {"phase", word(job.trace.op(at).phase)}};
  else if (job.trace.ops().empty() && fit.peak.step > 0)
    object["peak_at"] = {{"event", events_of(job).number(fit.peak.step - 1)}, {"events", events_of(job).count()}};
  else
    object["peak_at"] = nullptr;
  add_stated(object, fit);
  object["holders"] = Json::array();
  for (const Holder& holder : fit.holders)
    object["holders"].push_back(
        {{"module", holder.module}, {"kind", word(holder.kind)}, {"bytes", holder.bytes.count()}});
  if (fit.compared)
    object["other_allocator"] = {
        {"pool", fit.other.pool}, {"reserved_bytes", fit.other.needs.count()}, {"fits", fit.other.fits}};
  if (job.recorded) object["recorded_reserved_bytes"] = job.recorded->most_reserved.count();
  if (job.recorded && job.recorded->failed_request)
    object["failed_request_bytes"] = job.recorded->failed_request->count();
  if (batch) object.update(to_json(*batch));
  object["notes"] = remarks(arguments, job, fit);
  if (batch && !batch->ended.empty()) object["notes"].push_back(ended_text(*batch));
  return object;
}

void print_text(const FitArguments& arguments, const FittedJob& job, const Fit& fit,
                const std::optional<LargestBatch>& batch) {
  fmt::print("{}\n\n{} on {}\n", verdict(arguments, job, fit), printable(job.name), text_of(*fit.device));
  if (job.recorded) fmt::print("recorded    {} reserved at most\n", to_text(job.recorded->most_reserved));
  if (job.recorded && job.recorded->failed_request)
    fmt::print("            a request of {} failed where the program could have had {}\n",
               to_text(*job.recorded->failed_request), to_text(*job.recorded->capacity));
  fmt::print("predicted   {}; {} to {}\n", to_text(fit.predicted), to_text(fit.low), to_text(fit.high));
  fmt::print("reserved    {}{} by PyTorch's allocator, {} alive at the peak\n", fit.fits ? "" : "at least ",
             to_text(fit.reserved), to_text(fit.peak.live));
  fmt::print("{}", stated_text(job.trace, fit));
  if (fit.allocator.unlimited > fit.reserved)
    fmt::print("            it gives back what it caches: without limit it would reserve {}\n",
               to_text(fit.allocator.unlimited));
  fmt::print("context     {}, {}; {} to {}\n", to_text(fit.context.expected),
             fit.device->measured ? "fitted to measurements on such a device" : "assumed", to_text(fit.context.low),
             to_text(fit.context.high));
  fmt::print("workspaces  {}\n", fit.workspaces_recorded
                                     ? "those of cuBLAS are recorded and part of what is reserved"
                                     : fmt::format("{} of cuBLAS, which the recording does not have",
                                                   to_text(fit.workspace - fit.convolution_workspace)));
  if (fit.convolution_workspace > Bytes{})
    fmt::print(
        "            {} of cuDNN, assumed: {} times input and output of the largest convolution; low is without\n",
        to_text(fit.convolution_workspace), kConvolutionWorkspace);
  fmt::print("peak        {}\n", fit.peak.op.valid()       ? "before " + op_text(job.trace, fit.peak.op)
                                 : job.trace.ops().empty() ? events_of(job).after(fit.peak.step)
                                                           : "where the trace ends");
  fmt::print("allocator   {}\n", allocator_text(fit));
  if (batch) fmt::print("{}", text_of(*batch));
  fmt::print("\nholders at the peak\n");
  Bytes rest;
  const std::vector<Holder> holders = joined_holders(fit.holders, arguments.show);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    if (i >= arguments.show) {
      rest += holder.bytes;
      continue;
    }
    fmt::print("  {:>10}  {:<16} {}\n", to_text(holder.bytes), word(holder.kind), holder_text(holder));
  }
  if (rest > Bytes{}) fmt::print("  {:>10}  others; `tidepool explain` has all\n", to_text(rest));
}

void refuse_wrong_batch(const FitArguments& arguments) {
  const bool placed = std::any_of(arguments.command.begin(), arguments.command.end(),
                                  [](const std::string& word) { return word.find(kBatch) != std::string::npos; });
  if (arguments.batch && !arguments.trace.empty())
    refuse(
        "--batch: {} was recorded with one batch size; expected a command with {{batch}}, as in -- python3 train.py "
        "--batch-size {{batch}}",
        arguments.trace);
  if (arguments.batch && !placed)
    refuse(
        "--batch: the command has no {{batch}}; expected it where the job takes its batch size, as in -- python3 "
        "train.py --batch-size {{batch}}");
  if (!arguments.batch && placed) refuse("{{batch}}: expected --batch too, which tries batch sizes there");
}

/// Records the job with different batch sizes, and keeps the recordings that the verdict may be about.
class Search {
 public:
  explicit Search(const FitArguments& arguments) : arguments_{arguments} {}

  BatchTrial attempt(std::int64_t batch) {
    std::optional<FittedJob> job = recorded(batch);
    if (!job) return {.batch = batch, .failed = "nothing was recorded"};
    const Fit fit = settled_fit_of(arguments_, *job);
    say("batch {}: {} predicted\n", batch, to_text(fit.predicted));
    BatchTrial trial{.batch = batch, .fits = fit.fits, .predicted = fit.predicted};
    if (fit.fits && !job->failure.empty()) trial.failed = "the job failed: " + job->failure;
    if (trial.failed.empty() && cannot_tell(*job, fit)) trial.failed = untrained(arguments_, *job);
    if (trial.fits || jobs_.empty()) jobs_.insert_or_assign(batch, std::move(*job));
    if (jobs_.size() > 2) jobs_.erase(jobs_.begin());
    return trial;
  }

  /// The job with the largest batch that fits; if none fits, the first job.
  FittedJob& judged(const LargestBatch& found) { return found.batch ? jobs_.at(*found.batch) : jobs_.begin()->second; }

 private:
  /// @return  none if the recording was interrupted, or failed for another batch than the first
  /// @throws InputError  if the recording of the first batch failed
  std::optional<FittedJob> recorded(std::int64_t batch) const try {
    const std::vector<std::string> command = with_batch(arguments_.command, batch);
    std::optional<DryRecording> recording = record_dry(command, arguments_.budget, arguments_.seconds);
    if (!recording) return {};
    if (recording->job)
      refuse("--batch: {}: a job of {} ranks; expected one process", fmt::join(command, " "), recording->traces.size());
    return job_of_recording(command, std::move(*recording));
  } catch (const InputError&) {
    if (jobs_.empty()) throw;
    return {};
  }

  const FitArguments& arguments_;
  /// By batch: the two largest that fit or, until there are two, the first. If the job failed with the larger one, the
  /// other is judged.
  std::map<std::int64_t, FittedJob> jobs_;
};

int judge(const FitArguments& arguments, const FittedJob& job, const std::optional<LargestBatch>& largest) {
  const Fit fit = settled_fit_of(arguments, job);
  const std::optional<FitAdvice> advice = advice_for(
      job.trace, fit, {.file = arguments.trace, .command = job.command, .snapshot = job.history.has_value()});
  if (arguments.json) {
    Json object = to_json(arguments, job, fit, largest);
    if (advice) object["advice"] = to_json(*advice);
    fmt::print("{}\n", json_text(object));
  } else {
    print_text(arguments, job, fit, largest);
    if (advice) fmt::print("{}", text_of(*advice));
  }
  if (!job.said.empty()) say("last output of the job or its recording:\n{}", job.said);
  for (const std::string& line : remarks(arguments, job, fit)) say("{}: {}\n", job.name, line);
  return cannot_tell(job, fit) || (largest && !largest->ended.empty()) ? 1 : 0;
}

/// Prints that there is no verdict, since nothing was recorded. @return  the exit code
int print_stopped(const FitArguments& arguments, const StoppedUnrecorded& stopped) {
  if (arguments.json)
    fmt::print("{}\n", json_text(Json{{"job", fmt::format("{}", fmt::join(arguments.command, " "))},
                                      {"device", arguments.device},
                                      {"fits", nullptr},
                                      {"notes", {stopped.what()}}}));
  else
    fmt::print("cannot tell: {}\n", stopped.what());
  return 1;
}

/// The named devices, each with the given memory. The first one is that of a recording.
std::vector<DeviceBudget> budgets_of(const FitArguments& arguments) {
  std::vector<DeviceBudget> budgets;
  for (const std::string& name : split_list(arguments.device)) {
    budgets.push_back(device_budget(name));
    if (!arguments.capacity.empty())
      budgets.back().total = naming("--capacity", [&] { return parse_bytes(arguments.capacity); });
  }
  if (arguments.batch && budgets.size() > 1) refuse("--batch: {} devices; expected one", budgets.size());
  return budgets;
}

/// Calls `judge` for each device. @return  the worst of its exit codes
template <class Judge>
int for_each_device(FitArguments arguments, const std::vector<DeviceBudget>& budgets, const Judge& judge) {
  int worst = 0;
  for (const DeviceBudget& budget : budgets) {
    if (&budget != budgets.data() && !arguments.json) fmt::print("\n");
    arguments.budget = budget;
    worst = std::max(worst, judge(arguments));
  }
  return worst;
}

int run_fit(FitArguments& arguments) try {
  tell_apart(arguments);
  std::optional<FittedJob> job;
  std::optional<LoadedJob> ranks;
  if (is_job_file(arguments.trace)) ranks = load_job(arguments.trace);
  if (arguments.device.empty()) {
    if (!arguments.trace.empty() && !ranks) job = job_of_file(arguments.trace);
    if (job || ranks) arguments.device = dry_device(job ? job->trace : ranks->traces.front());
    if (arguments.device.empty())
      refuse("--device: expected the device that the job is for: {}", device_budget_names());
  }
  const std::vector<DeviceBudget> budgets = budgets_of(arguments);
  arguments.budget = budgets.front();
  refuse_wrong_batch(arguments);
  if (arguments.seconds < 1) refuse("--seconds: {}: expected a whole number from 1", arguments.seconds);
  if (!arguments.pool.empty() && arguments.pool != "pytorch" && arguments.pool != "pytorch-expandable")
    refuse("--pool: '{}' is no allocator of PyTorch; expected pytorch or pytorch-expandable", arguments.pool);
  if (arguments.batch) {
    Search search{arguments};
    const LargestBatch largest =
        largest_batch([&](std::int64_t batch) { return search.attempt(batch); }, arguments.budget.total, kMostBatch);
    if (Interruptible::asked()) return Interruptible::code();
    FittedJob& judged = search.judged(largest);
    record_worst(arguments, judged);
    return Interruptible::asked() ? Interruptible::code() : judge(arguments, judged, largest);
  }
  if (!arguments.trace.empty() && !job && !ranks) job = job_of_file(arguments.trace);
  if (arguments.trace.empty()) {
    std::optional<DryRecording> recording = record_dry(arguments.command, arguments.budget, arguments.seconds);
    if (!recording) return Interruptible::code();
    if (recording->job) {
      arguments.trace = fmt::format("{}", fmt::join(arguments.command, " "));
      if (recording->stopped)
        say("{}: the job was stopped after {} s; what it did until then is judged\n", arguments.trace,
            arguments.seconds);
      ranks = LoadedJob{.job = std::move(*recording->job), .traces = std::move(recording->traces)};
    } else {
      job = job_of_recording(arguments.command, std::move(*recording));
      record_worst(arguments, *job);
      if (Interruptible::asked()) return Interruptible::code();
    }
  }
  if (ranks)
    return for_each_device(arguments, budgets, [&](const FitArguments& one) {
      return judge_ranks(*ranks, one.trace, one.budget, one.pool, one.json);
    });
  return for_each_device(arguments, budgets, [&](const FitArguments& one) { return judge(one, *job, {}); });
} catch (const StoppedUnrecorded& stopped) {
  return print_stopped(arguments, stopped);
}

const RegisterCommand kFit{
    {.name = "fit",
     .summary = "whether a job fits a device: how much memory it takes there, and what holds it",
     .seldom = {"--pool", "--seconds", "--show"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<FitArguments>();
       arguments->behind_dashes = app.behind_dashes();
       app.add_option("job", arguments->words,
                      "a trace, a memory snapshot of PyTorch, or the job file of several ranks");
       app.add_option("command", arguments->none, "instead, after --: a command, which is recorded dry");
       app.add_option("--device", arguments->device,
                      "one or several, as in t4,rtx-4060; a command is recorded on the first; of a dry run, its own if "
                      "none is named: " +
                          device_budget_names());
       app.add_option("--capacity", arguments->capacity,
                      "for a device like the named one, but with this much memory for programs, as in 11.6GiB");
       app.add_flag("--batch", arguments->batch,
                    "look for the largest batch that fits: {batch} in the command stands for it");
       app.add_option("--pool", arguments->pool,
                      "the job's allocator: pytorch, or pytorch-expandable (as the snapshot says, else pytorch)");
       app.add_option("--seconds", arguments->seconds,
                      "stop a recorded job after so long, and judge what it did until then")
           .capture_default_str();
       app.add_option("--show", arguments->show, "rows of the table of holders").capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_fit(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
