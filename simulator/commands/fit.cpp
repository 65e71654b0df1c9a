// tidepool fit: whether a job fits a device, by how much, and what holds the memory.
#include "simulator/fit/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "simulator/audit/tune.hpp"
#include "simulator/fit/dry_recording.hpp"
#include "simulator/fit/largest_batch.hpp"
#include "simulator/text/numbers.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/input.hpp"
#include "traces/names.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

constexpr const char* kBatch = "{batch}";
constexpr std::int64_t kMostBatch = std::int64_t{1} << 20;

struct Arguments {
  std::vector<std::string> job;
  std::string device, pool;
  int seconds = 300;
  std::size_t show = 10;
  bool batch = false, json = false;
};

using Json = nlohmann::ordered_json;

/// What is judged, and what is known of it beside the trace.
struct Job {
  std::string name;
  Trace trace;
  std::optional<RecordedMemory> recorded;  ///< of a snapshot
  std::string conf;                        ///< the allocator's setting, as recorded
  std::string said;                        ///< by a job that did not end well
};

double gib(Bytes size) { return static_cast<double>(size.count()) / (1 << 30); }

Job job_of_file(const std::string& path) {
  const Input input = read_input(path);
  if (find_importer(input, "auto").name != "torch-snapshot") return {path, load_trace(path), {}, "", ""};
  try {
    const TorchSnapshot snapshot = parse_torch_snapshot(input.bytes());
    const RecordedMemory recorded = recorded_memory(snapshot);
    return {path, device_trace(snapshot, recorded.device), recorded, snapshot.settings.conf, ""};
  } catch (const InputError& error) {
    throw error.at(path);
  }
}

Job job_of_command(const Arguments& arguments, std::vector<std::string> command) {
  const std::string name = fmt::format("{}", fmt::join(command, " "));
  DryRecording recording = record_dry(command, arguments.device, arguments.seconds);
  return {name, std::move(recording.trace), {}, "", std::move(recording.said)};
}

/// One word that is a file nobody can run is a trace; all else is a command.
bool is_trace(const std::vector<std::string>& job) {
  return job.size() == 1 && std::filesystem::is_regular_file(job[0]) && access(job[0].c_str(), X_OK) != 0;
}

std::vector<std::string> with_batch(std::vector<std::string> command, std::int64_t batch) {
  for (std::string& word : command)
    for (std::size_t at = word.find(kBatch); at != std::string::npos; at = word.find(kBatch))
      word.replace(at, std::string_view{kBatch}.size(), std::to_string(batch));
  return command;
}

std::string pool_of(const Arguments& arguments, const Job& job) {
  if (!arguments.pool.empty()) return arguments.pool;
  return job.conf.find("expandable_segments:True") == std::string::npos ? "pytorch" : "pytorch-expandable";
}

Fit fit_of(const Arguments& arguments, const Job& job) {
  return predict_fit(job.trace, device_budget(arguments.device), pool_of(arguments, job));
}

std::string op_text(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  return fmt::format(
      "op {}, {}{}", id.index(), trace.text(op.name),
      op.module.valid() && !trace.text(op.module).empty() ? fmt::format(" ({})", trace.text(op.module)) : "");
}

std::string verdict(const Fit& fit) {
  const Bytes total = fit.device->total;
  const std::string sizes = fmt::format("{:.2f} of {:.2f} GiB", gib(fit.predicted), gib(total));
  if (fit.fits)
    return fmt::format("fits: {}, margin {}{}", sizes, to_text(total - fit.predicted),
                       fit.high <= total ? "" : fmt::format("; not for certain, it may be {}", to_text(fit.high)));
  return fmt::format("does not fit: {}, {} too much{}", sizes, to_text(fit.predicted - total),
                     fit.low > total ? "" : fmt::format("; not for certain, it may be {}", to_text(fit.low)));
}

/// What the other setting of segments would change, as a sentence.
std::string allocator_text(const Fit& fit) {
  const bool to_expandable = fit.other.pool == "pytorch-expandable";
  const std::string setting =
      fmt::format("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:{}", to_expandable ? "True" : "False");
  const Bytes saved = fit.allocator.unlimited - fit.other.unlimited;
  if (fit.other.fits && !fit.fits)
    return fmt::format("{} makes it fit: {} reserved instead of {}", setting, to_text(fit.other.reserved),
                       to_text(fit.allocator.reserved));
  if (saved <= Bytes{}) return fmt::format("{} reserves no less", setting);
  return fmt::format("{} reserves {} less: {}{}", setting, to_text(saved), to_text(fit.other.unlimited),
                     fit.fits ? "" : ", which does not make it fit");
}

Json to_json(const Job& job, const Fit& fit, const std::optional<LargestBatch>& batch) {
  const OpId at = fit.peak.op;
  Json object{{"job", job.name},
              {"device", fit.device->name},
              {"fits", fit.fits},
              {"capacity_bytes", fit.device->total.count()},
              {"predicted_bytes", fit.predicted.count()},
              {"low_bytes", fit.low.count()},
              {"high_bytes", fit.high.count()},
              {"margin_bytes", (fit.device->total - fit.predicted).count()},
              {"reserved_bytes", fit.reserved.count()},
              {"context_bytes", fit.device->context.count()},
              {"workspace_bytes", fit.workspace.count()},
              {"workspaces_recorded", fit.workspaces_recorded},
              {"live_bytes", fit.peak.live.count()},
              {"pool", fit.allocator.pool}};
  if (at.valid())
    object["peak_at"] = {{"op", at.index()},
                         {"name", job.trace.text(job.trace.op(at).name)},
                         {"module", job.trace.text(job.trace.op(at).module)},
                         {"phase", word(job.trace.op(at).phase)}};
  else
    object["peak_at"] = nullptr;
  object["holders"] = Json::array();
  for (const Holder& holder : fit.holders)
    object["holders"].push_back(
        {{"module", holder.module}, {"kind", word(holder.kind)}, {"bytes", holder.bytes.count()}});
  object["other_allocator"] = {
      {"pool", fit.other.pool}, {"reserved_bytes", fit.other.unlimited.count()}, {"fits", fit.other.fits}};
  if (job.recorded) object["recorded_reserved_bytes"] = job.recorded->most_reserved.count();
  if (job.recorded && job.recorded->failed_request)
    object["failed_request_bytes"] = job.recorded->failed_request->count();
  if (batch) {
    object["largest_batch"] = batch->batch ? Json(*batch->batch) : Json(nullptr);
    for (const BatchTrial& trial : batch->trials)
      object["batches"].push_back(
          {{"batch", trial.batch}, {"fits", trial.fits}, {"predicted_bytes", trial.predicted.count()}});
  }
  object["notes"] = fit.notes;
  for (const std::string& line : missing_names(job.trace)) object["notes"].push_back(line);
  return object;
}

void print_batches(const LargestBatch& found) {
  if (!found.batch) {
    fmt::print("batch       none fits, not even 1\n");
    return;
  }
  fmt::print("batch       {} is the largest that fits; recorded:", *found.batch);
  std::vector<BatchTrial> trials = found.trials;
  std::sort(trials.begin(), trials.end(), [](const BatchTrial& a, const BatchTrial& b) { return a.batch < b.batch; });
  for (const BatchTrial& trial : trials)
    fmt::print("{} {} ({:.2f} GiB{})", &trial == &trials.front() ? "" : ",", trial.batch, gib(trial.predicted),
               trial.fits ? "" : ", too much");
  fmt::print("\n");
}

void print_text(const Arguments& arguments, const Job& job, const Fit& fit, const std::optional<LargestBatch>& batch) {
  fmt::print("{}\n\n{} on {}\n", verdict(fit), job.name, fit.device->name);
  if (job.recorded) fmt::print("recorded    {} reserved at most\n", to_text(job.recorded->most_reserved));
  if (job.recorded && job.recorded->failed_request)
    fmt::print("            a request of {} failed where the program could have had {}\n",
               to_text(*job.recorded->failed_request), to_text(*job.recorded->capacity));
  fmt::print("predicted   {}; {} to {}\n", to_text(fit.predicted), to_text(fit.low), to_text(fit.high));
  fmt::print("reserved    {} by PyTorch's allocator, {} alive at the peak\n", to_text(fit.reserved),
             to_text(fit.peak.live));
  if (fit.fits && fit.allocator.unlimited > fit.reserved)
    fmt::print("            it gives back what it caches: without limit it would reserve {}\n",
               to_text(fit.allocator.unlimited));
  fmt::print("context     {}, {}; {} to {}\n", to_text(fit.device->context),
             fit.device->measured ? "fitted to measurements on such a device" : "assumed",
             to_text(fit.device->context_low), to_text(fit.device->context_high));
  fmt::print("workspaces  {}\n",
             fit.workspaces_recorded
                 ? "those of cuBLAS are recorded and part of what is reserved"
                 : fmt::format("{} of cuBLAS, which the recording does not have", to_text(fit.workspace)));
  fmt::print("peak        {}\n",
             fit.peak.op.valid() ? "in front of " + op_text(job.trace, fit.peak.op) : "where the trace ends");
  fmt::print("allocator   {}\n", allocator_text(fit));
  if (batch) print_batches(*batch);
  fmt::print("\nholders at the peak\n");
  Bytes rest;
  for (std::size_t i = 0; i < fit.holders.size(); ++i) {
    const Holder& holder = fit.holders[i];
    if (i >= arguments.show) {
      rest += holder.bytes;
      continue;
    }
    fmt::print("  {:>10}  {:<16} {}{}\n", to_text(holder.bytes), word(holder.kind),
               holder.named_by == NamedBy::kOperator ? "of operator " : "",
               holder.named_by == NamedBy::kNothing ? "(not recorded)" : holder.module);
  }
  if (rest > Bytes{}) fmt::print("  {:>10}  others; `tidepool explain` has all\n", to_text(rest));
}

void refuse_wrong_batch(const Arguments& arguments) {
  const bool placed = std::any_of(arguments.job.begin(), arguments.job.end(),
                                  [](const std::string& word) { return word.find(kBatch) != std::string::npos; });
  if (arguments.batch && is_trace(arguments.job))
    refuse(
        "--batch: {} was recorded with one batch size; expected a command with {{batch}}, as in -- python3 train.py "
        "--batch-size {{batch}}",
        arguments.job[0]);
  if (arguments.batch && !placed)
    refuse(
        "--batch: the command has no {{batch}}; expected it where the job takes its batch size, as in -- python3 "
        "train.py --batch-size {{batch}}");
  if (!arguments.batch && placed) refuse("{{batch}}: expected --batch too, which tries batch sizes there");
}

int run(const Arguments& arguments) {
  const DeviceBudget& device = device_budget(arguments.device);
  refuse_wrong_batch(arguments);
  if (!arguments.pool.empty() && arguments.pool != "pytorch" && arguments.pool != "pytorch-expandable")
    refuse("--pool: '{}' is no allocator of PyTorch; expected pytorch or pytorch-expandable", arguments.pool);
  std::optional<Job> job;
  std::optional<LargestBatch> largest;
  if (arguments.batch) {
    const auto attempt = [&](std::int64_t batch) {
      Job tried = job_of_command(arguments, with_batch(arguments.job, batch));
      const Fit fit = fit_of(arguments, tried);
      fmt::print(stderr, "batch {}: {} predicted\n", batch, to_text(fit.predicted));
      if (!job || fit.fits) job = std::move(tried);
      return BatchTrial{batch, fit.fits, fit.predicted};
    };
    largest = largest_batch(attempt, device.total, kMostBatch);
  } else {
    job = is_trace(arguments.job) ? job_of_file(arguments.job[0]) : job_of_command(arguments, arguments.job);
  }
  const Fit fit = fit_of(arguments, *job);
  if (arguments.json)
    fmt::print("{}\n", to_json(*job, fit, largest).dump());
  else
    print_text(arguments, *job, fit, largest);
  if (!job->said.empty())
    fmt::print(stderr, "the job or its recording did not end well; what is recorded is judged. What was said:\n{}",
               job->said);
  for (const std::string& line : fit.notes) fmt::print(stderr, "{}: {}\n", job->name, line);
  for (const std::string& line : missing_names(job->trace)) fmt::print(stderr, "{}: {}\n", job->name, line);
  return 0;
}

const RegisterCommand kRegistered{
    {.name = "fit",
     .summary = "whether a job fits a device: how much memory it takes there, and what holds it",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("job", arguments->job,
                      "a trace or a memory snapshot of PyTorch; or, behind --, a command, which is recorded dry")
           .required();
       app.add_option("--device", arguments->device, device_budget_names()).required();
       app.add_flag("--batch", arguments->batch,
                    "look for the largest batch that fits: {batch} in the command stands for it");
       app.add_option("--pool", arguments->pool,
                      "the job's allocator: pytorch, or pytorch-expandable (as the snapshot says, else pytorch)");
       app.add_option("--seconds", arguments->seconds,
                      "stop a recorded job after so long, and judge what it did until then")
           .capture_default_str()
           .positive();
       app.add_option("--show", arguments->show, "rows of the table of holders").capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
