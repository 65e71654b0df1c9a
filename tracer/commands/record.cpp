// tidepool record: runs a job with a recorder inside, and makes a trace from the raw files.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracer/commands/recorded.hpp"
#include "tracer/cupti/options.hpp"
#include "tracer/dry/dry_run.hpp"
#include "tracer/framework_environment.hpp"
#include "tracer/lower/rank_files.hpp"
#include "tracer/ranks/recorded_job.hpp"
#include "traces/base/child_process.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/file/writer.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/job/job_output.hpp"
#include "traces/job/like_ranks.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;
namespace variable = cupti::variable;

struct RecordArguments {
  std::string output = "run.tide", iteration_range, iteration_kernel, signal, cupti, library, framework, times;
  std::optional<std::uint64_t> skip, iterations, steps;
  dry::DryRun dry{.device = "h100-80gb", .capacity = ""};
  bool is_dry = false, like_ranks = false, kernels = false, keep_raw = false, wait = false, device_buffers = false,
       torch = false, no_gpu = false, detach = true;
  std::vector<std::string> command;
};

constexpr const char* kNoHook =
    "PyTorch's hook was not loaded: no Python of the job imported torch, or it did not look into PYTHONPATH; expected "
    "python without -I, -E and -S, and a job that keeps PYTHONPATH (as in PYTHONPATH=src:$PYTHONPATH)";

/// The number of the signal `name`, which may be a name or a number: USR1, SIGUSR1 or 10.
/// @throws InputError  for any other text
int signal_number(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, int>, 4> kNames{
      {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}}};
  std::string_view text = name;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (const auto& [known, number] : kNames)
    if (text == known) return number;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > SIGRTMAX)
    refuse("--signal: '{}' is no signal; expected USR1, USR2, HUP, WINCH or a number", name);
  return number;
}

/// The reason why NVIDIA's driver cannot be loaded; empty if it can.
std::string driver_missing() {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) return "";
  return dlerror();
}

/// Path of the injection library: `given` or, if that is empty, the library in the build or in the installation.
/// @return  "" if `torch` is set and both the library and NVIDIA's driver are absent: then only PyTorch's hook records
/// @throws InputError  if there is no library in other cases
std::string injection_library(const std::string& given, bool torch) {
  if (!given.empty()) {
    if (!fs::exists(given)) refuse("--library: {}: no such file; expected libtidepool_inject.so", given);
    return fs::absolute(given).string();
  }
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<fs::path> places{here, here.parent_path() / "lib/tidepool", here.parent_path() / "lib64/tidepool",
                               here.parent_path() / "lib/x86_64-linux-gnu/tidepool"};
  for (const fs::path& place : places)
    if (fs::exists(place / "libtidepool_inject.so")) return (place / "libtidepool_inject.so").string();
  if (torch && !driver_missing().empty()) return "";
  refuse(
      "record: no libtidepool_inject.so in {}; it is built where cuda.h and cupti.h are found (./setup.sh cuda-headers "
      "fetches them){}",
      here.string(), torch ? "; with --torch, --no-gpu records PyTorch alone" : "");
}

bool records_torch(const RecordArguments& arguments) { return arguments.torch || arguments.framework == "torch"; }

/// Whether PyTorch's hook is the only recorder.
bool without_gpu(const RecordArguments& arguments) {
  return !arguments.is_dry && (arguments.no_gpu || (records_torch(arguments) && !driver_missing().empty()));
}

/// The device for which the times of PyTorch's operators are estimated; empty: the times are measured.
std::string times_of(const RecordArguments& arguments) {
  if (!arguments.times.empty() || !arguments.is_dry || !records_torch(arguments)) return arguments.times;
  return arguments.dry.device;
}

std::map<std::string, std::string> environment(const RecordArguments& arguments, const fs::path& raw) {
  std::map<std::string, std::string> set{{variable::kFolder, fs::absolute(raw).string()}};
  const auto put = [&](const char* name, const std::string& value) {
    if (!value.empty()) set[name] = value;
  };
  if (arguments.is_dry) {
    set.merge(dry::dry_environment(arguments.dry));
  } else if (!arguments.no_gpu) {
    const std::string library = injection_library(arguments.library, records_torch(arguments));
    put("CUDA_INJECTION64_PATH", library);
    put("NVTX_INJECTION64_PATH", library);
  }
  put(variable::kCupti, arguments.cupti);
  put(variable::kIterationRange, arguments.iteration_range);
  put(variable::kIterationKernel, arguments.iteration_kernel);
  put(variable::kTimes, times_of(arguments));
  if (arguments.skip) set[variable::kSkip] = std::to_string(*arguments.skip);
  if (arguments.iterations)
    set[variable::kIterations] = std::to_string(*arguments.iterations);
  else if (records_torch(arguments) && !arguments.kernels)
    set[variable::kIterations] = "1";  // a plan is made for one step
  if (arguments.steps) set[variable::kSteps] = std::to_string(*arguments.steps);
  if (!arguments.signal.empty()) set[variable::kSignal] = std::to_string(signal_number(arguments.signal));
  if (arguments.wait) set[variable::kWait] = "1";
  if (arguments.device_buffers) set[variable::kDeviceBuffers] = "1";
  if (!arguments.detach) set[variable::kDetach] = "0";
  if (!arguments.framework.empty()) set.merge(framework_environment(arguments.framework));
  if (records_torch(arguments)) set[variable::kTorch] = "1";
  if (records_torch(arguments) || arguments.is_dry) {  // a dry run tunes nothing and computes values
    const std::string packages = python_folder();
    set["PYTHONPATH"] = prepended("PYTHONPATH", packages + "/inject:" + packages);
  }
  return set;
}

/// The reason why no trace can be made; empty if one can.
std::string nothing_recorded(const Recorded& recorded, const RecordArguments& arguments, int status) {
  if (!recorded.files && arguments.is_dry)
    return "no process of the job used the CUDA runtime, or all that did have it linked in";
  if (!recorded.work && without_gpu(arguments)) {
    const std::uint64_t skip = arguments.skip.value_or(0);
    return recorded.hooked ? fmt::format(
                                 "no step of PyTorch; a message above gives the reason, or the job completed at "
                                 "most {} step{} of an optimizer, or as many backward passes without one",
                                 skip + 1, skip == 0 ? "" : "s")
                           : kNoHook;
  }
  if (!recorded.files) {
    if (const std::string missing = driver_missing(); !missing.empty())
      return fmt::format("there is no NVIDIA driver here ({}); --torch records PyTorch without one", missing);
    return "no process of the job used CUDA; expected one that calls cuInit, and does not clear its environment";
  }
  if (!recorded.work)
    return "no kernel, copy or op was recorded; a message above gives the reason, or the job ran none";
  // Without the hook, the driver's allocations are a framework's segments, not its tensors.
  if (records_torch(arguments) && !recorded.hooked && !arguments.is_dry) return kNoHook;
  if (status == 0 && recorded.steps && recorded.whole_steps == 0)
    return "the job ended before a recorded step was complete; expected more steps of its optimizer, or a smaller "
           "--skip";
  return "";
}

/// A sentence about the content that the command's options ask for and the trace lacks; empty if it lacks nothing.
std::string broken_promise(const Recorded& recorded, std::size_t iterations, const RecordArguments& arguments) {
  if (records_torch(arguments) && !recorded.hooked)
    return fmt::format("{}; the trace has no operators, modules and roles from PyTorch", kNoHook);
  if (records_torch(arguments) && !recorded.steps)
    return "no step of PyTorch was recorded; the trace has no operators, modules and roles from PyTorch";
  const std::size_t whole = recorded.steps ? recorded.whole_steps : iterations;
  if (whole < arguments.iterations.value_or(0))
    return fmt::format("{} of {} iterations are recorded: the job had no more{}", whole, *arguments.iterations,
                       arguments.signal.empty() ? "" : " while it was recorded");
  return "";
}

/// Whether torch.compile could not compile the job.
bool failed_to_compile(const Recorded& recorded) {
  return recorded.said.starts_with("InductorError") || recorded.said.starts_with("BackendCompilerFailed") ||
         recorded.said.starts_with("TritonMissing");
}

/// A sentence about the zeros of a dry run, which may be the reason if the job's Python failed, or if PyTorch's hook
/// recorded no complete step; or about its compilers, if compilation failed. Empty in other cases, and if the job ran
/// out of memory. Without the hook, the reason of an exit status is not known. Each but 0 counts, also that of abort()
/// and other crashes, unless a signal ended the job that others send.
std::string zeros_hint(const Recorded& recorded, const RecordArguments& arguments, int status) {
  if (!arguments.is_dry || !recorded.work || recorded.said.find("OutOfMemoryError") != std::string::npos) return "";
  constexpr std::array<int, 4> kSent{SIGINT, SIGKILL, SIGTERM, SIGHUP};
  const bool stopped = std::find(kSent.begin(), kSent.end(), status - 128) != kSent.end();
  const bool failed = status != 0 && (records_torch(arguments) ? !recorded.said.empty() : !stopped);
  const bool untrained = recorded.hooked && recorded.whole_steps == 0;
  if (!failed && !untrained) return "";
  if (failed_to_compile(recorded))
    return "in a dry run, torch.compile compiles the job's kernels as on a GPU; expected Triton in the job's Python, "
           "and a C compiler (gcc, or the one that CC names)";
  return "in a dry run, kernels compute nothing and their results are zeros, so comparisons are false, even x == x and "
         "isfinite(x), and torch.distributions needs validate_args=False (tracer/dry/README.md)";
}

/// The iterations that the command asks for, as (index of the first, number), in a dry run without PyTorch's hook. The
/// number is smaller if the trace has fewer. None for other recordings, and if --skip and --iterations (0: all) leave
/// nothing out.
/// @throws InputError  "the job had 3 iterations; expected more, or a --skip below 3"; also if the trace has none
std::optional<std::pair<std::size_t, std::size_t>> iterations_asked_for(const Trace& trace,
                                                                        const RecordArguments& arguments) {
  const std::size_t skip = arguments.skip.value_or(0), asked = arguments.iterations.value_or(0);
  if (!arguments.is_dry || records_torch(arguments) || (skip == 0 && asked == 0)) return {};
  const std::size_t count = complete_iterations(trace);
  if (count == 0) refuse("no iterations were found in the job; expected --iteration-kernel to say where one begins");
  if (skip >= count)
    refuse("the job had {} iteration{}; expected more, or a --skip below {}", count, count == 1 ? "" : "s", count);
  return std::pair{skip, std::min(asked == 0 ? count : asked, count - skip)};
}

/// "1 copy", "3 copies".
std::string some(std::size_t count, const char* one, const char* more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

/// Whether the only step that the hook recorded is the one in which the job failed.
bool has_part_only(const Recorded& recorded) { return recorded.steps && recorded.whole_steps == 0; }

/// @return  the number of the trace's iterations
std::size_t print_recorded(const std::string& output, const Trace& trace, const Recorded& recorded) {
  const Summary sum = summarize(trace);
  say("{}: {}, {}, {}, {}\n", output, some(sum.kernels, "kernel", "kernels"), some(sum.copies, "copy", "copies"),
      some(sum.buffers, "buffer", "buffers"),
      has_part_only(recorded) ? "part of 1 iteration: the job failed in it"
                              : some(sum.iterations, "iteration", "iterations"));
  for (const std::string& line : warnings(trace)) say("{}: {}\n", output, line);
  return sum.iterations;
}

/// The trace, with the reason in its metadata if the job failed.
/// @param failure  "ValueError: bad data", or "" of a job that did not fail
Trace with_failure(Trace trace, const std::string& failure) {
  if (failure.empty()) return trace;
  TraceData data = trace.data();
  data.meta["failure"] = failure;
  return Trace{std::move(data)};
}

/// Makes the trace of one raw recording. @return  the number of the trace's iterations
std::size_t save_trace(const RecordArguments& arguments, const std::string& raw, const std::string& output,
                       const Recorded& recorded, const std::string& failure) {
  Trace trace = load_trace(raw, arguments.kernels ? "raw-kernels" : "raw");
  if (const auto asked = iterations_asked_for(trace, arguments)) trace = iterations(trace, asked->first, asked->second);
  trace = with_failure(std::move(trace), failure);
  write_file(output, to_trace_file(trace));
  return print_recorded(output, trace, recorded);
}

/// @return  the number of the trace's iterations
std::size_t save_trace(const RecordArguments& arguments, const std::string& raw, const Recorded& recorded,
                       const std::string& failure) {
  if (recorded.trained > 1)
    say("{}: {} processes trained; this trace has the ops and the memory of all of them as one step\n",
        arguments.output, recorded.trained);
  if (arguments.like_ranks)
    say("tidepool: --like-ranks: the job has one rank, so nothing is shared; expected several\n");
  return save_trace(arguments, raw, arguments.output, recorded, failure);
}

/// Makes a trace of each process that trained, one after the other: run.tide, run.2.tide, ... Each process gets a
/// folder of its own in the raw recording.
/// @return  the number of iterations of the trace with the fewest
std::size_t save_in_a_row(const RecordArguments& arguments, const fs::path& raw, const Recorded& recorded,
                          const std::string& failure) {
  const fs::path output = arguments.output;
  say("{}: {} processes trained, one after the other; each has a trace of its own\n", arguments.output,
      recorded.in_a_row.size());
  std::size_t least = SIZE_MAX;
  for (std::size_t i = 0; i < recorded.in_a_row.size(); ++i) {
    const fs::path folder = raw / std::to_string(i + 1);
    fs::create_directory(folder);
    for (const std::string& file : recorded.in_a_row[i]) fs::rename(file, folder / fs::path{file}.filename());
    const bool last = i + 1 == recorded.in_a_row.size();
    const fs::path name =
        i == 0 ? output : fs::path{output}.replace_extension(fmt::format("{}{}", i + 1, output.extension().string()));
    least = std::min(least, save_trace(arguments, folder.string(), name.string(), recorded, last ? failure : ""));
  }
  return least;
}

/// Writes the job file, and the trace of each rank beside it.
/// @return  the number of iterations of the rank with the fewest
std::size_t save_job(const RecordArguments& arguments, const std::string& raw, const Recorded& recorded,
                     const std::string& failure) {
  const auto shorten = [&](LoweredRank rank) {
    const auto asked = iterations_asked_for(rank.trace, arguments);
    return asked ? iterations(std::move(rank), asked->first, asked->second) : rank;
  };
  RecordedJob joined = join_recorded(raw, by_rank(raw, read_captures(raw)),
                                     arguments.kernels ? LoweredOps::kKernels : LoweredOps::kIterations, shorten);
  LoadedJob& job = joined.job;
  for (Trace& trace : job.traces) trace = with_failure(std::move(trace), failure);
  std::vector<std::size_t> first_of;
  if (arguments.like_ranks) first_of = share_traces(job);
  write_job(arguments.output, job);
  std::size_t least = SIZE_MAX;
  for (std::size_t rank = 0; rank < job.traces.size(); ++rank)
    if (first_of.empty() || first_of[rank] == rank)
      least = std::min(least, print_recorded(job.job.ranks[rank].trace, job.traces[rank], recorded));
    else
      say("{}: rank {} does the same as rank {}, and has its trace\n", arguments.output, rank, first_of[rank]);
  say("{}: {}, {} of {}\n", arguments.output, some(job.traces.size(), "rank", "ranks"),
      some(job.job.collectives.size(), "collective", "collectives"), some(job.job.groups.size(), "group", "groups"));
  for (const std::string& line : notes_of(joined)) say("{}: {}\n", arguments.output, line);
  return least;
}

/// @throws InputError  if options exclude each other, or if --like-ranks or --times lacks an option that it needs
void require_sense(const RecordArguments& arguments) {
  if (arguments.is_dry && !arguments.signal.empty())
    refuse("--signal: a dry run records all that the job does; expected it without --dry");
  if (!arguments.signal.empty() && without_gpu(arguments))
    refuse("--signal: it stops and starts the recording of the GPU, and only PyTorch is recorded; expected {}",
           arguments.no_gpu ? "it without --no-gpu" : "NVIDIA's driver");
  for (const auto& [option, value] : {std::pair{"--iteration-range", &arguments.iteration_range},
                                      std::pair{"--iteration-kernel", &arguments.iteration_kernel}})
    if (!value->empty() && records_torch(arguments))
      refuse("{}: with PyTorch's hook, iterations are the steps of an optimizer; expected it without --torch", option);
  if (arguments.steps && (!records_torch(arguments) || arguments.steps == 0U))
    refuse("--steps: PyTorch's hook counts steps; expected a number from 1 on, and --torch too");
  if (arguments.is_dry && !arguments.iteration_range.empty())
    refuse("--iteration-range: a dry run sees no NVTX ranges; expected --iteration-kernel");
  if (arguments.like_ranks && !arguments.is_dry)
    refuse("--like-ranks: ranks on real devices take different times; expected it with --dry");
  if (!arguments.times.empty() && !records_torch(arguments))
    refuse("--times: what PyTorch's hook records is priced; expected --torch too");
  if (!arguments.times.empty() && arguments.kernels)
    refuse("--times: PyTorch's operators are priced; expected it without --kernels");
}

/// Removes the folder with the raw recording. Files stay in it that cannot be removed or that a process still writes.
void remove_raw(const fs::path& raw) {
  try {
    std::error_code ignored;
    fs::remove_all(raw, ignored);
  } catch (const std::bad_alloc&) {  // the job's exit code is more important
  }
}

int record(const RecordArguments& arguments) {
  require_sense(arguments);
  if (arguments.output.empty()) refuse("-o: the name of the trace is empty; expected one, as in run.tide");
  const fs::path output = arguments.output, raw = fs::path{output}.replace_extension(".raw");
  if (arguments.wait && arguments.signal.empty())
    refuse("--wait: nothing would start the recording; expected --signal too");
  if (raw == output)
    refuse("-o {}: this is the name of the folder for the raw recording; expected another ending, as in run.tide",
           output.string());
  if (const fs::path folder = output.parent_path(); !folder.empty() && !fs::is_directory(folder))
    refuse("-o {}: there is no folder {}; expected one that exists", output.string(), folder.string());
  require_writable(output.string());
  if (arguments.no_gpu && !arguments.is_dry && !records_torch(arguments))
    refuse("--no-gpu: nothing would be recorded; expected --torch too");
  if (fs::exists(raw))
    refuse("{}: exists already; expected no file or folder of this name: the raw recording goes there", raw.string());
  const int status = run_child(arguments.command, {.environment = environment(arguments, raw)});
  int result = status;
  bool several_ranks = false;
  try {
    remove_raw(raw / "ranks");  // messages that the ranks of the job exchanged
    const Recorded recorded = look_at_recorded(raw);
    several_ranks = recorded.several_ranks;
    if (status != 0)
      say("tidepool: the job {}{}\n", how_it_ended(status),
          recorded.said.empty() ? "" : fmt::format(" ({})", recorded.said));
    if (const std::string hint = zeros_hint(recorded, arguments, status); !hint.empty()) say("tidepool: {}\n", hint);
    if (const std::string reason = nothing_recorded(recorded, arguments, status); !reason.empty()) {
      say("tidepool: nothing recorded: {}\n", reason);
      if (!arguments.keep_raw) remove_raw(raw);
      return status != 0 ? status : 1;
    }
    const std::string failure = status == 0 ? "" : recorded.said.empty() ? how_it_ended(status) : recorded.said;
    const std::size_t iterations = recorded.several_ranks      ? save_job(arguments, raw.string(), recorded, failure)
                                   : recorded.in_a_row.empty() ? save_trace(arguments, raw.string(), recorded, failure)
                                                               : save_in_a_row(arguments, raw, recorded, failure);
    if (const std::string broken = broken_promise(recorded, iterations, arguments); !broken.empty()) {
      say("tidepool: {}\n", broken);
      if (result == 0) result = 1;
    }
  } catch (const std::bad_alloc&) {
    // These calls take no memory, so that the job's exit code is returned.
    say_text("tidepool: the trace takes more memory than there is\ntidepool: the recording is in ");
    say_text(raw.native());
    say_text("; `tidepool import` makes a trace of it\n");
    return status != 0 ? status : 1;
  } catch (const std::exception& error) {
    say("tidepool: {}\ntidepool: the recording is in {}; `tidepool import` makes a trace of {}\n", error.what(),
        raw.string(), several_ranks ? "one rank, from a folder with the files of its process alone" : "it");
    return status != 0 ? status : 1;
  }
  if (!arguments.keep_raw) remove_raw(raw);
  return result;
}

const RegisterCommand kRecord{
    {.name = "record",
     .summary = "run a job, record what it does on the GPU, and make a trace of it",
     .seldom = {"--steps", "--kernels", "--devices", "--iteration-range", "--iteration-kernel", "--signal", "--wait",
                "--keep-raw", "--framework", "--placement", "--cupti", "--like-ranks", "--device-buffers",
                "--no-detach", "--library"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<RecordArguments>();
       app.add_option(
              "-o,--output", arguments->output,
              "the trace; for a job of several ranks, the job file, with the traces beside it; the raw recording "
              "goes to a folder RUN.raw beside it")
           .capture_default_str();
       app.add_option("--skip", arguments->skip,
                      "iterations before the first that is recorded; with --torch, the job's first iteration is never "
                      "recorded and does not count: --skip 1 begins with the third");
       app.add_option("--iterations", arguments->iterations,
                      "iterations to record, or 0 for all; then the job continues at full speed (default: all; with "
                      "--torch and without --kernels 1)");
       app.add_option("--steps", arguments->steps,
                      "end the job after so many steps; with --torch. Those that are not recorded count, too");
       app.add_option(
           "--times", arguments->times,
           "estimate the times of PyTorch's operators for this device, as in a100-40gb, instead of measuring "
           "them (tracer/torch/README.md); default in a dry run: --device");
       app.add_flag("--kernels", arguments->kernels,
                    "the trace has the kernels of the whole job, even if PyTorch's operators are known");
       app.add_option("--iteration-range", arguments->iteration_range,
                      "an iteration begins with an NVTX range whose name begins with this text (default: iteration)");
       app.add_option("--iteration-kernel", arguments->iteration_kernel,
                      "an iteration begins with the launch of a kernel whose mangled name contains this text");
       app.add_option("--signal", arguments->signal,
                      "this signal to the job stops and starts the recording: USR1, USR2, ... or a number");
       app.add_flag("--wait", arguments->wait, "record nothing before the first signal");
       app.add_flag("--keep-raw", arguments->keep_raw, "keep the folder RUN.raw, from which traces can be made again");
       app.add_flag("--torch", arguments->torch, "also record PyTorch's tensors and ops");
       app.add_option("--framework", arguments->framework,
                      "torch (same as --torch); jax or tensorflow (tf): switch the framework's own memory pool off, so "
                      "that its buffers can be seen; slow");
       app.add_flag(
           "--no-gpu", arguments->no_gpu,
           "record only PyTorch's tensors and ops, not the GPU (default with --torch if NVIDIA's driver is missing)");
       const auto dry =
           app.add_flag("--dry", arguments->is_dry,
                        "stand in for the GPU: almost nothing is computed (only sums, maxima and minima of a few "
                        "64-bit integers, additions to them, and small collectives), and times are estimates "
                        "(tracer/dry/README.md)");
       app.add_option("--device", arguments->dry.device, "for --dry: " + dry::device_names())
           .capture_default_str()
           .needs(dry);
       app.add_option("--capacity", arguments->dry.capacity,
                      "for --dry: the size of the device's memory, as in 24GiB (default: that of --device)")
           .needs(dry);
       app.add_option(
              "--placement", arguments->dry.placement,
              "for --dry: addresses of memory, by which PyTorch's allocator breaks ties: lowest-first (side by side), "
              "or top-down (in chunks of 32 MiB, as on two measured devices under Linux)")
           .capture_default_str()
           .needs(dry);
       app.add_option("--devices", arguments->dry.devices,
                      "for --dry: number of devices that a process can choose from (default 1; with torchrun, one for "
                      "each process)")
           .needs(dry);
       app.add_option("--routing", arguments->dry.routing,
                      "for --dry: places that results of kernels choose, as the experts of tokens: balanced, zipf, "
                      "worst (nearly all choose the same), or a file with the share of each place")
           .capture_default_str()
           .needs(dry);
       app.add_option("--cupti", arguments->cupti, "the libcupti.so to use, if not the one that the job loads");
       app.add_flag(
           "--like-ranks", arguments->like_ranks,
           "with --dry, for a job of several ranks: a rank that does the same as an earlier one gets the trace "
           "of that rank, with its times");
       app.add_flag("--device-buffers", arguments->device_buffers, "CUPTI may keep its buffers in device memory");
       app.add_flag("!--no-detach", arguments->detach, "CUPTI stays in the job after the recording, and slows it down");
       app.add_option("--library", arguments->library, "the libtidepool_inject.so to use");
       app.add_option("command", arguments->command, "the job, after --").required();
       return [arguments] { return record(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
