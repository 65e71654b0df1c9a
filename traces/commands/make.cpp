// tidepool make: a synthetic training step of a model of any size.
#include <fmt/format.h>

#include <initializer_list>
#include <memory>

#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/file/writer.hpp"
#include "traces/summary.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool {
namespace {

struct MakeArguments {
  std::string model, memory_rate, output;
  double teraflops = 156;
  std::int64_t layers = 0, batch = 0, heads = 0;
  GptShape gpt;
  ResnetShape resnet;
};

/// The largest divisor of a width that is no more than GPT-2's number of heads.
std::int64_t usual_heads(std::int64_t hidden) {
  std::int64_t heads = GptShape{}.heads;
  while (hidden % heads != 0) --heads;
  return heads;
}

Trace make(MakeArguments arguments) {
  Roofline roofline;
  roofline.flops_per_us = static_cast<std::int64_t>(arguments.teraflops * 1e6);
  if (!arguments.memory_rate.empty()) roofline.memory_rate = parse_rate(arguments.memory_rate);
  const auto set = [&](auto& shape) {
    if (arguments.layers != 0) shape.layers = arguments.layers;
    if (arguments.batch != 0) shape.batch = arguments.batch;
  };
  set(arguments.gpt), set(arguments.resnet);
  arguments.gpt.heads = arguments.heads != 0 ? arguments.heads : usual_heads(arguments.gpt.hidden);
  if (arguments.model == "gpt") return gpt_step(arguments.gpt, roofline);
  if (arguments.model == "resnet") return resnet_step(arguments.resnet, roofline);
  throw InputError{unknown_name("model", arguments.model, {"gpt", "resnet"})};
}

/// Refuses an option that the model does not have.
void refuse_others_options(const std::string& model, const CommandLine& app) {
  const auto only_of = [&](const char* owner, std::initializer_list<const char*> options) {
    for (const char* option : options)
      if (model != owner && app.count(option) > 0)
        refuse("{}: is of {}; expected no {} for {}", option, owner, option, model);
  };
  if (model != "gpt" && model != "resnet") return;  // make() refuses it
  only_of("gpt", {"--hidden", "--heads", "--sequence", "--vocabulary", "--micro-batches"});
  only_of("resnet", {"--width", "--image"});
}

int run_make(const MakeArguments& arguments) {
  require_writable(arguments.output);
  const Trace trace = make(arguments);
  write_file(arguments.output, to_trace_file(trace));
  const Summary sum = summarize(trace);
  say("{}: synthetic, {} buffers, {} ops, {}, ideal peak {}\n", arguments.output, sum.buffers, sum.ops,
      to_text(sum.duration), to_text(sum.ideal_peak));
  return 0;
}

const RegisterCommand kMake{
    {.name = "make",
     .summary = "make a synthetic training step of a GPT- or ResNet-like model of any depth",
     .seldom = {"--heads", "--sequence", "--vocabulary", "--micro-batches", "--width", "--image", "--teraflops",
                "--memory-rate"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<MakeArguments>();
       GptShape& gpt = arguments->gpt;
       ResnetShape& resnet = arguments->resnet;
       const auto count = [&](const std::string& flag, std::int64_t& value, const std::string& what) {
         return app.add_option(flag, value, what).range(std::int64_t{1}, std::int64_t{1'000'000});
       };
       app.add_option("model", arguments->model, "gpt or resnet").required();
       count("--layers", arguments->layers, "gpt: 12 by default; resnet: 6 n + 2, 110 by default");
       count("--batch", arguments->batch, "sequences or images; 8 and 128 by default");
       count("--hidden", gpt.hidden, "gpt: width").capture_default_str();
       count("--heads", arguments->heads,
             "gpt: attention heads, a divisor of the width; by default the largest one up to 12");
       count("--sequence", gpt.sequence, "gpt: tokens of a sequence").capture_default_str();
       count("--vocabulary", gpt.vocabulary, "gpt: tokens of the vocabulary").capture_default_str();
       count("--micro-batches", gpt.micro_batches, "gpt: of --batch sequences each; gradients are summed")
           .capture_default_str();
       count("--width", resnet.width, "resnet: channels of the first stage").capture_default_str();
       count("--image", resnet.image, "resnet: pixels a side, a multiple of 4").capture_default_str();
       app.add_option(
              "--teraflops", arguments->teraflops,
              "the device's rate of arithmetic, 10^12 operations a second; by default half of an A100's nominal rate")
           .range(1e-3, 1e6)
           .capture_default_str();
       app.add_option("--memory-rate", arguments->memory_rate,
                      "the device's rate of memory; 1548GB/s by default, four fifths of an A100's nominal rate");
       app.add_option("-o,--output", arguments->output, "the trace file, RUN.tide").required();
       return [arguments, app] {
         refuse_others_options(arguments->model, app);
         return run_make(*arguments);
       };
     }}};

}  // namespace
}  // namespace tidepool
