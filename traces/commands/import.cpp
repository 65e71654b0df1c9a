// tidepool import: a trace in any known form becomes a trace file.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/output.hpp"
#include "traces/base/text.hpp"
#include "traces/file/writer.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/job/job_import.hpp"
#include "traces/job/job_output.hpp"
#include "traces/redact.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

struct ImportArguments {
  std::string input, format = "auto", with, output;
  std::optional<std::size_t> device, iteration;
  bool redact = true;
};

std::string formats() {
  std::string text = "auto";
  for (const Importer& importer : all_importers()) text += fmt::format(", {} ({})", importer.name, importer.summary);
  return text;
}

Trace read(const ImportArguments& arguments) {
  Trace trace = load_trace(arguments.input, arguments.format, arguments.device, arguments.with);
  if (arguments.redact) trace = redacted(std::move(trace));
  if (!arguments.iteration) return trace;
  try {
    return one_iteration(trace, *arguments.iteration);
  } catch (const InputError& error) {
    throw error.at(arguments.input);
  }
}

void refuse_parts(const ImportArguments& arguments) {
  if (arguments.device || arguments.iteration)
    throw InputError{fmt::format("{}: several ranks; expected no --device and --iteration", arguments.input)};
}

/// Writes the job file and, beside it, a trace file for each rank.
void save_job(const ImportArguments& arguments, LoadedJob& loaded) {
  if (arguments.redact)
    for (Trace& trace : loaded.traces) trace = redacted(std::move(trace));
  write_job(arguments.output, loaded);
  for (std::size_t rank = 0; rank < loaded.traces.size(); ++rank)
    for (const std::string& line : warnings(loaded.traces[rank])) say("{}: {}\n", loaded.job.ranks[rank].trace, line);
}

int import_profiles(const ImportArguments& arguments) {
  refuse_parts(arguments);
  require_file_name(arguments.output);
  std::vector<RankProfile> profiles = read_rank_profiles(arguments.input);
  if (!arguments.with.empty()) add_operands(arguments.input, profiles, arguments.with);
  LoadedJob loaded = join_ranks(arguments.input, std::move(profiles));
  save_job(arguments, loaded);
  say("{}: {} ranks, {} collectives; the recorded ends of one collective differ by up to {}\n", arguments.output,
      loaded.traces.size(), loaded.job.collectives.size(), to_text(loaded.job.clock_residual));
  return 0;
}

int import_recorded(const ImportArguments& arguments, ReadJob recorded) {
  refuse_parts(arguments);
  save_job(arguments, recorded.job);
  const std::size_t collectives = recorded.job.job.collectives.size();
  say("{}: {} ranks, {} {}\n", arguments.output, recorded.job.traces.size(), collectives,
      collectives == 1 ? "collective" : "collectives");
  for (const std::string& line : recorded.notes) say("{}: {}\n", arguments.output, line);
  return 0;
}

/// As read(). If the input is in no form, but holds profiles of ranks, the message says how to read these.
Trace read_one(const ImportArguments& arguments) try { return read(arguments); } catch (const InputError&) {
  if (arguments.format != "auto" || !holds_several_files(arguments.input) || !holds_profiles(arguments.input)) throw;
  throw InputError{
      fmt::format("{}: profiles of torch.profiler; expected --format kineto, which joins those of all ranks to a job",
                  arguments.input)};
}

int import_trace(const ImportArguments& arguments) {
  if (arguments.format == "kineto" && holds_several_files(arguments.input)) return import_profiles(arguments);
  if (arguments.with.empty())
    if (std::optional<ReadJob> recorded = read_recorded_job(arguments.input, arguments.format))
      return import_recorded(arguments, std::move(*recorded));
  require_writable(arguments.output);
  const Trace trace = read_one(arguments);
  const std::string bytes = to_trace_file(trace);
  write_file(arguments.output, bytes);
  const Summary sum = summarize(trace);
  say("{}: {} buffers, {} ops, ideal peak {}, {} on disk\n", arguments.output, sum.buffers, sum.ops,
      to_text(sum.ideal_peak), to_text(Bytes{static_cast<std::int64_t>(bytes.size())}));
  for (const std::string& line : warnings(trace)) say("{}: {}\n", arguments.input, line);
  return 0;
}

const RegisterCommand kImport{
    {.name = "import",
     .summary = "make a trace file of a log, a snapshot or another program's trace",
     .seldom = {"--with", "--iteration"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ImportArguments>();
       app.add_option(
              "file", arguments->input,
              "what to read; .gz, .xz and .zst as they are; with --format kineto also a folder or a tar archive with a "
              "file for each rank; the folder RUN.raw of a recording, also of several ranks")
           .required();
       app.add_option("--format", arguments->format, formats());
       app.add_option(
           "--with", arguments->with,
           "for torch-et: the profile (kineto) of the same run, for durations; for several ranks: a folder or "
           "a tar archive with the execution trace of each, for buffers");
       app.add_option("--device", arguments->device, "of a file of several devices, only this one");
       app.add_option("--iteration", arguments->iteration, "of a trace that marks them, only this one, counted from 0");
       app.add_flag("!--no-redact,--redact", arguments->redact,
                    "remove folders from paths, mail addresses, the command line and the environment (default)");
       app.add_option("-o,--output", arguments->output,
                      "the trace file, RUN.tide; for several ranks, the job file, JOB.json, with the traces beside it")
           .required();
       return [arguments] { return import_trace(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
