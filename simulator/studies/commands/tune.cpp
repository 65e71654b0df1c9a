// tidepool tune: allocator settings that reserve the least memory for a recorded program, or avoid its failure.
#include "simulator/studies/audit/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct TuneArguments {
  std::string path, capacity;
  std::size_t show = 10;
  bool json = false;
};

/// The requests of a recorded program, and its memory limit.
struct Program {
  Trace trace;
  std::optional<RecordedMemory> recorded;
  std::string conf;  ///< as recorded
};

Program load_program(const std::string& path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) return {load_trace(path), {}, ""};
  const Input input = read_trace_input(path);
  if (find_importer(input, "auto").name != "torch-snapshot") return {load_trace(input), {}, ""};
  try {
    const TorchSnapshot snapshot = parse_torch_snapshot(input.bytes());
    const RecordedMemory recorded = recorded_memory(snapshot);
    return {device_trace(snapshot, recorded.device), recorded, snapshot.settings.conf};
  } catch (const InputError& error) {
    throw error.at(path);
  }
}

std::string assignment(const std::string& conf) {
  return conf.empty() ? "the defaults" : "PYTORCH_CUDA_ALLOC_CONF=" + conf;
}

void print_json(const TuneArguments& arguments, const Program& program, const std::vector<TunedSetting>& tuned,
                Bytes capacity) {
  nlohmann::ordered_json object{{"trace", arguments.path}, {"load_bytes", program.trace.ideal_peak().count()}};
  if (capacity != kNoLimit) object["capacity_bytes"] = capacity.count();
  if (program.recorded) {
    object["device"] = program.recorded->device;
    object["recorded_reserved_bytes"] = program.recorded->most_reserved.count();
    object["recorded_conf"] = program.conf;
    if (program.recorded->failed_request) object["failed_request_bytes"] = program.recorded->failed_request->count();
  }
  for (const TunedSetting& one : tuned) {
    nlohmann::ordered_json entry{{"conf", one.setting.conf}, {"outcome", to_text(one.outcome)}};
    if (one.outcome == Outcome::kOk)
      entry["reserved_bytes"] = one.reserved.count();
    else
      entry["message"] = one.message;
    object["settings"].push_back(std::move(entry));
  }
  fmt::print("{}\n", json_text(object));
}

void print_recorded(const RecordedMemory& recorded, const std::string& conf) {
  fmt::print("recorded on device {}: {} B reserved at most{}\n", recorded.device,
             grouped(recorded.most_reserved.count()), conf.empty() ? "" : " with " + conf);
  if (recorded.failed_request)
    fmt::print("recorded on device {}: a request of {} B failed where the program could have had {} B\n",
               recorded.device, grouped(recorded.failed_request->count()), grouped(recorded.capacity->count()));
}

void print_text(const TuneArguments& arguments, const Program& program, const std::vector<TunedSetting>& tuned,
                Bytes capacity) {
  const Bytes load = program.trace.ideal_peak();
  fmt::print("{}: {} buffers, load {} B{}\n", printable(arguments.path),
             grouped(static_cast<std::int64_t>(program.trace.buffers().size())), grouped(load.count()),
             capacity == kNoLimit ? "" : fmt::format(", capacity {} B", grouped(capacity.count())));
  if (program.recorded) print_recorded(*program.recorded, program.conf);
  const auto is_default = [](const TunedSetting& one) { return one.setting.conf.empty(); };
  fmt::print("{:>18}  {:>10}  {}\n", "reserved", "over load", "setting");
  const auto line = [&](const TunedSetting& one) {
    const bool fits = one.outcome == Outcome::kOk;
    const double over =
        load == Bytes{} ? 0 : (static_cast<double>(one.reserved.count()) / static_cast<double>(load.count()) - 1) * 100;
    fmt::print("{:>18}  {:>10}  {}\n", fits ? grouped(one.reserved.count()) : "out of memory",
               fits ? fmt::format("{:+.3f} %", over) : "", one.setting.conf.empty() ? "(defaults)" : one.setting.conf);
  };
  for (std::size_t i = 0; i < std::min(arguments.show, tuned.size()); ++i) line(tuned[i]);
  const auto defaults = std::find_if(tuned.begin(), tuned.end(), is_default);
  if (static_cast<std::size_t>(defaults - tuned.begin()) >= arguments.show) line(*defaults);

  const TunedSetting& best = tuned.front();
  const auto fitting =
      std::count_if(tuned.begin(), tuned.end(), [](const TunedSetting& one) { return one.outcome == Outcome::kOk; });
  if (load > capacity)
    fmt::print("no setting can help: {} B live at once, {} B more than the capacity\n", grouped(load.count()),
               grouped((load - capacity).count()));
  else if (fitting == 0)
    fmt::print("none of {} settings fits: {}\n", tuned.size(), best.message);
  else if (capacity != kNoLimit)
    fmt::print("{} of {} settings fit; best: {}\n", fitting, tuned.size(), assignment(best.setting.conf));
  else
    fmt::print("best of {}: {}\n", tuned.size(), assignment(best.setting.conf));
}

int run_tune(const TuneArguments& arguments) {
  const Program program = load_program(arguments.path);
  Bytes capacity = kNoLimit;
  if (!arguments.capacity.empty())
    capacity = parse_capacity(arguments.capacity, program.trace.ideal_peak());
  else if (program.recorded && program.recorded->capacity)
    capacity = *program.recorded->capacity;
  const std::vector<AllocatorSetting> settings = allocator_settings(capacity != kNoLimit);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<TunedSetting> tuned = tune(program.trace, settings, capacity);
  const Nanos wall{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  arguments.json ? print_json(arguments, program, tuned, capacity) : print_text(arguments, program, tuned, capacity);
  say("{} settings in {}\n", settings.size(), to_text(wall));
  return tuned.front().outcome == Outcome::kOk ? 0 : 1;
}

const RegisterCommand kTune{
    {.name = "tune",
     .summary = "find the PyTorch allocator settings that would have reserved the least",
     .seldom = {"--show"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<TuneArguments>();
       app.add_option("snapshot", arguments->path,
                      "a PyTorch memory snapshot with recorded events, or any other trace; buffers that exist at its "
                      "beginning are placed first, on an empty device")
           .required();
       app.add_option(
           "--capacity", arguments->capacity,
           "the memory of the program: 16GiB, 1.1x (of the load) or none; by default, the memory that it could "
           "have had when a recorded request failed");
       app.add_option("--show", arguments->show, "how many settings the table shows, the best first")
           .capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_tune(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
