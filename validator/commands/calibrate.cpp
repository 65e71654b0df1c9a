// tidepool calibrate: a machine file with measurements of this machine.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/engine/machine/machine_file.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/output.hpp"
#include "traces/base/text.hpp"
#include "validator/cuda/calibration.hpp"
#include "validator/host/calibration.hpp"

namespace tidepool {
namespace {

struct CalibrateArguments {
  std::string output, backend = "cuda", name, largest;
  int device = 0, samples = CalibrationOptions{}.samples;
  bool json = false;
};

Calibration calibrate_device(const CalibrateArguments& arguments, const CalibrationOptions& options) {
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::Gpu> gpu;
  try {
    driver = std::make_unique<cuda::Driver>();
    gpu = std::make_unique<cuda::Gpu>(*driver, arguments.device);
  } catch (const cuda::Error& error) {
    throw InputError{fmt::format("--backend: cuda: {}", error.what())};
  }
  return cuda::calibrate(*gpu, options);
}

CalibrationOptions calibration_options(const CalibrateArguments& arguments) {
  CalibrationOptions options{.samples = arguments.samples};
  if (options.samples < 1) throw InputError{"--samples: expected at least 1"};
  if (arguments.largest.empty()) return options;
  try {
    options.largest = parse_bytes(arguments.largest);
  } catch (const InputError& error) {
    throw error.at("--largest");
  }
  if (options.largest < 4_MiB || options.largest > 4_GiB)
    throw InputError{
        fmt::format("--largest: '{}' is no size to measure copies up to; expected 4MiB to 4GiB", arguments.largest)};
  return options;
}

std::string text_of(const Figure& figure, double value) {
  if (figure.unit == "ns") return to_text(Nanos{static_cast<std::int64_t>(value)});
  if (figure.unit == "%") return fmt::format("{:.1f} %", value);
  return fmt::format("{:.4g} {}", value / 1e9, figure.unit == "flop/s" ? "Gflop/s" : "GB/s");
}

void print(const Calibration& calibration) {
  fmt::print("{:<40}{:>14}{:>14}{:>14}\n", "measured", "median", "least", "most");
  for (const Figure& figure : calibration.figures)
    fmt::print("{:<40}{:>14}{:>14}{:>14}\n", figure.name, text_of(figure, figure.median), text_of(figure, figure.least),
               text_of(figure, figure.most));
}

int run_calibrate(const CalibrateArguments& arguments) {
  if (arguments.backend != "host" && arguments.backend != "cuda")
    throw InputError{fmt::format("--backend: '{}' is not a backend; expected host or cuda", arguments.backend)};
  const CalibrationOptions options = calibration_options(arguments);
  require_writable(arguments.output);
  Calibration calibration =
      arguments.backend == "host" ? calibrate_host(options) : calibrate_device(arguments, options);
  if (!arguments.name.empty()) calibration.machine.name = arguments.name;
  write_file(arguments.output, machine_file(calibration.machine));
  if (!arguments.json) {
    print(calibration);
    return 0;
  }
  nlohmann::ordered_json json{{"machine", calibration.machine.name}, {"source", calibration.machine.source}};
  for (const Figure& figure : calibration.figures)
    json["figures"].push_back({{"name", figure.name},
                               {"unit", figure.unit},
                               {"median", figure.median},
                               {"least", figure.least},
                               {"most", figure.most},
                               {"samples", figure.samples}});
  fmt::print("{}\n", json_text(json));
  return 0;
}

const RegisterCommand kCalibrate{
    {.name = "calibrate",
     .summary = "measure this machine's links, allocator and launch costs, and write a machine file",
     .seldom = {"--name", "--samples", "--largest", "--device"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<CalibrateArguments>();
       app.add_option("-o,--output", arguments->output, "the machine file, for --machine").required();
       app.add_option("--backend", arguments->backend,
                      "cuda: a GPU (default); host: this machine's memory, for validate --backend host --move");
       app.add_option(
           "--name", arguments->name,
           "the machine's name in results (default: the name of the device; with --backend host, this-host)");
       app.add_option("--samples", arguments->samples, "measurements of each number (default 15)");
       app.add_option("--largest", arguments->largest, "copies up to this size, 4MiB to 4GiB (default 256MiB)");
       app.add_option("--device", arguments->device, "cuda: number of the device (default 0)");
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_calibrate(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
