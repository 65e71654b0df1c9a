#include "simulator/studies/fit/fit.hpp"

#include <map>
#include <string>

#include "simulator/studies/commands/fit_advice.hpp"
#include "simulator/studies/fit/largest_batch.hpp"
#include "tests/catch.hpp"
#include "tests/refusal.hpp"
#include "tracer/dry/preset.hpp"
#include "traces/builder.hpp"

namespace tidepool::fit_test {

using tests::refusal;

namespace {

constexpr Bytes kMiB{1 << 20};

/// 100 MiB and 30 MiB, live together.
Trace two_buffers(const char* capture) {
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", capture}};
  build.alloc({.size = kMiB * 100});
  build.alloc({.size = kMiB * 30});
  return build.finish();
}

const DeviceBudget& t4() { return device_budget("t4"); }  // 14930 MiB, of which the context takes 120

}  // namespace

TEST_CASE("a device with another size of memory is named with it, and by the options that ask for it") {
  CHECK(text_of(t4()) == "t4");
  CHECK(options_of(t4()) == "--device t4");
  DeviceBudget other = t4();
  other.total = 12_GiB;
  CHECK(text_of(other) == "t4 with 12 GiB");
  CHECK(options_of(other) == "--device t4 --capacity 12884901888B");
}

TEST_CASE("the memory of a process is its allocator's, its context and its workspaces") {
  const DeviceBudget& a100 = device_budget("a100-40gb");
  const Fit recorded = predict_fit(two_buffers("interposer+torch"), a100, "pytorch");
  CHECK(recorded.fits);
  CHECK(recorded.reserved == kMiB * 130);
  CHECK(recorded.workspace == 0_B);
  CHECK(recorded.predicted == kMiB * 130 + a100.context.expected);
  CHECK(recorded.low == kMiB * 130 + a100.context.low);
  CHECK(recorded.high == kMiB * 130 + a100.context.high);
  // PyTorch's hook alone records tensors and no workspaces, so two of 8.125 MiB are added.
  const Fit tensors = predict_fit(two_buffers("torch"), a100, "pytorch");
  CHECK(tensors.workspace == 16640_KiB);
  CHECK(tensors.predicted == recorded.predicted + 16640_KiB);
}

TEST_CASE("a convolution needs a workspace of 36/16 of its input and output, if cuDNN's workspaces are not recorded") {
  const auto fit_of = [](const std::map<std::string, std::string>& recorded, const char* op) {
    TraceBuilder build;
    build.meta() = recorded;
    const BufferId x = build.alloc({.size = kMiB * 100}), w = build.alloc({.size = kMiB * 20}),
                   y = build.alloc({.size = kMiB * 60});
    build.run({.name = build.text(op)}, {{x}, {w}, {y, Access::kWrite}});
    return predict_fit(build.finish(), t4(), "pytorch");
  };
  const std::map<std::string, std::string> dry{{"source", "raw"}, {"capture", "interposer"}, {"mode", "dry run: ..."}};
  for (const char* op : {"cudnnConvolutionForward", "aten::convolution", "aten::conv2d"}) {
    const Fit fit = fit_of(dry, op);
    CHECK(fit.convolution_workspace == kMiB * 360);
    CHECK(fit.workspace == kMiB * 360);
    CHECK(fit.reserved == kMiB * 180);
    CHECK(fit.predicted == kMiB * 540 + t4().context.expected + t4().cudnn.expected);
    CHECK(fit.low == kMiB * 180 + t4().context.low);
    CHECK(fit.high == kMiB * (180 + 800) + t4().context.high + t4().cudnn.high);  // 5 times input and output
    CHECK(fit.peak.live == kMiB * 180);
  }
  const Fit tensors = fit_of({{"source", "torch"}}, "aten::convolution");
  CHECK(tensors.workspace == kMiB * 360 + t4().workspace);
  CHECK(fit_of(dry, "aten::mm").workspace == 0_B);
  const Fit seen = fit_of({{"source", "raw"}, {"capture", "cupti+torch"}, {"mode", "cupti"}}, "aten::convolution");
  CHECK(seen.reserved == kMiB * 180);
  CHECK(seen.workspace == 0_B);
}

TEST_CASE("only the convolution with the largest input and output determines the workspace") {
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}, {"mode", "dry run: ..."}};
  for (const std::int64_t size : {10, 40, 20}) {
    const BufferId x = build.alloc({.size = kMiB * size}), y = build.alloc({.size = kMiB * size});
    build.run({.name = build.text("cudnnConvolutionForward")}, {{x}, {y, Access::kWrite}});
    build.free(x);
    build.free(y);
  }
  CHECK(predict_fit(build.finish(), t4(), "pytorch").convolution_workspace == kMiB * 180);  // 36/16 of 40 + 40
}

TEST_CASE("a job with convolutions has cuDNN's kernels in its context") {
  const auto context_of = [](const char* op) {
    TraceBuilder build;
    const BufferId x = build.alloc({.size = kMiB});
    build.run({.name = build.text(op)}, {{x, Access::kReadWrite}});
    return predict_fit(build.finish(), device_budget("a100-40gb"), "pytorch").context;
  };
  const DeviceBudget& a100 = device_budget("a100-40gb");
  CHECK(context_of("aten::mm").expected == a100.context.expected);
  CHECK(context_of("aten::convolution").expected == a100.context.expected + kMiB * 163);
  CHECK(context_of("aten::convolution_backward").high == a100.context.high + kMiB * 310);
}

TEST_CASE("a job without memory for the workspaces of its convolutions is predicted to fail, but not for certain") {
  TraceBuilder build;  // 5000 MiB and a workspace of 11250 MiB; 14810 MiB are left
  build.meta() = {{"source", "torch"}};
  const BufferId x = build.alloc({.size = kMiB * 2500}), y = build.alloc({.size = kMiB * 2500});
  build.run({.name = build.text("aten::convolution")}, {{x}, {y, Access::kWrite}});
  const Fit fit = predict_fit(build.finish(), t4(), "pytorch");
  CHECK_FALSE(fit.fits);
  CHECK_FALSE(fit.certain);
  CHECK(fit.reserved == kMiB * 5000);
  CHECK(fit.predicted == kMiB * 16250 + t4().context.expected + t4().workspace);
  CHECK(fit.low == kMiB * 5000 + t4().context.low + t4().workspace);
}

TEST_CASE("a job with convolutions never fits for certain unless cuDNN's workspaces are recorded") {
  // No upper limit of a workspace is known: 8 images took 17 times the tensors of timm's mobilevitv2_125.
  const auto fit_from = [](const char* source, std::int64_t size) {
    TraceBuilder build;
    build.meta() = {{"source", source}};
    const BufferId x = build.alloc({.size = kMiB * size});
    build.run({.name = build.text("aten::convolution")}, {{x, Access::kReadWrite}});
    return predict_fit(build.finish(), t4(), "pytorch");
  };
  const Fit dry = fit_from("torch", 1);
  CHECK((dry.fits && !dry.certain && dry.high < t4().total));
  CHECK(dry.doubts == std::vector<std::string>{"workspaces of cuDNN are assumed"});
  CHECK((fit_from("torch-snapshot", 1).fits && fit_from("torch-snapshot", 1).certain));
  CHECK((!fit_from("torch", 20'000).fits && fit_from("torch", 20'000).certain));
}

TEST_CASE("a job fits if it fits after its allocator releases cached segments") {
  // 8000 MiB are cached when 9000 MiB are requested: 17000 MiB in all. 14810 MiB are left beside the context.
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
  build.free(build.alloc({.size = kMiB * 8000}));
  build.alloc({.size = kMiB * 9000});
  const Fit cached = predict_fit(build.finish(), t4(), "pytorch");
  CHECK(cached.fits);
  CHECK(cached.allocator.unlimited == kMiB * 17000);
  CHECK(cached.reserved == kMiB * 9000);
}

TEST_CASE("a job with fragmented memory fits with expandable segments") {
  // A segment of 6000 MiB holds 3000 MiB and cannot be released when 9000 MiB are requested: 15000 MiB are reserved. An
  // expandable segment grows to 12000 MiB.
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
  build.free(build.alloc({.size = kMiB * 6000}));
  build.alloc({.size = kMiB * 3000});
  build.alloc({.size = kMiB * 9000});
  const Trace trace = build.finish();
  const Fit native = predict_fit(trace, t4(), "pytorch");
  CHECK_FALSE(native.fits);
  CHECK(native.reserved == kMiB * 15000);
  CHECK(native.allocator.needs == kMiB * 15000);
  CHECK(native.other.fits);
  CHECK(native.other.needs == kMiB * 12000);
  CHECK(predict_fit(trace, t4(), "pytorch-expandable").fits);
}

TEST_CASE("what another setting of the allocator would change is certain only if the job's own is known") {
  // As above, 6000 + 11000 MiB are reserved, and 3000 + 11000 with expandable segments. 3000 + 16000 MiB fit with none.
  const auto fit_of = [](const std::string& mode, const std::string& pool, std::int64_t last) {
    TraceBuilder build;
    build.meta() = {{"source", "raw"}, {"capture", "interposer"}, {"mode", mode}};
    build.free(build.alloc({.size = kMiB * 6000}));
    build.alloc({.size = kMiB * 3000});
    build.alloc({.size = kMiB * last});
    return predict_fit(build.finish(), t4(), pool);
  };
  const Fit open = fit_of("", "", 11'000);
  CHECK((!open.fits && !open.certain));
  CHECK(open.doubts == std::vector<std::string>{"the settings of the allocator are not recorded"});
  CHECK((!fit_of("", "pytorch", 11'000).fits && fit_of("", "pytorch", 11'000).certain));
  CHECK((!fit_of("dry run", "", 11'000).fits && fit_of("dry run", "", 11'000).certain));
  CHECK((!fit_of("", "", 16'000).fits && fit_of("", "", 16'000).certain));
}

TEST_CASE("missing bytes are counted from the least capacity that is enough, not from the unlimited memory") {
  // 8000 MiB are cached when 15000 MiB are requested. Once they are released, 15000 MiB are enough; 14810 MiB are left
  // beside the context.
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
  build.free(build.alloc({.size = kMiB * 8000}));
  build.alloc({.size = kMiB * 15000});
  const Fit fit = predict_fit(build.finish(), t4(), "pytorch");
  CHECK_FALSE(fit.fits);
  CHECK(fit.certain);
  CHECK(fit.allocator.unlimited == kMiB * 23000);
  CHECK(fit.reserved == kMiB * 15000);
  CHECK(fit.predicted == kMiB * 15120);
}

TEST_CASE("the verdict is certain if the allocator fits beside the smallest and the largest context") {
  // With the largest context, 14810 - 1026 MiB are left. 8000 MiB are cached when `size` MiB are requested.
  const auto fit_with = [](std::int64_t size) {
    TraceBuilder build;
    build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
    build.free(build.alloc({.size = kMiB * 8000}));
    build.alloc({.size = kMiB * size});
    return predict_fit(build.finish(), t4(), "pytorch");
  };
  CHECK((fit_with(13000).fits && fit_with(13000).certain));
  CHECK((fit_with(14000).fits && !fit_with(14000).certain));
  CHECK(fit_with(14000).high == kMiB * 14000 + t4().context.high);
}

TEST_CASE("a prediction is never below the recorded memory of the job") {
  const Trace trace = two_buffers("interposer");
  const Fit fit = predict_fit(trace, t4(), "pytorch", kMiB * 150);
  CHECK(fit.reserved == kMiB * 150);
  CHECK(fit.allocator.unlimited == kMiB * 150);
  CHECK(fit.allocator.needs == kMiB * 130);  // the model's result, by which settings are compared
  CHECK(predict_fit(trace, t4(), "pytorch", kMiB * 100).reserved == kMiB * 130);
}

TEST_CASE("a step with buffers from earlier steps is repeated until the allocator's cache is that of training") {
  // Each step keeps `next` and frees the one before. While `next` (100 MiB) is made, `kept` (100 MiB) and `other` (60
  // MiB) are live: 260 MiB. `next` takes the place that the step before has freed.
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
  const BufferId kept = build.existing({.size = kMiB * 100});
  const BufferId other = build.alloc({.size = kMiB * 60});
  const BufferId next = build.alloc({.size = kMiB * 100});
  build.run({}, {{kept}, {other, Access::kWrite}, {next, Access::kWrite}});
  build.free(other);
  build.free(kept);
  const Fit fit = predict_fit(build.finish(), t4(), "pytorch");
  CHECK(fit.reserved == kMiB * 260);
  CHECK(fit.peak.live == kMiB * 260);
}

TEST_CASE("a job on two devices is refused") {
  TraceBuilder build;
  build.alloc({.size = 8_B});
  build.alloc({.size = 8_B, .device = 1});
  const Trace trace = build.finish();
  CHECK(refusal([&] { predict_fit(trace, t4(), "pytorch"); }) ==
        "the trace is of 2 devices; expected one, as `fit` judges one (tidepool import --device keeps one)");
}

TEST_CASE("a trace without buffers is refused") {
  const Trace trace = TraceBuilder{}.finish();
  CHECK(refusal([&] { predict_fit(trace, t4(), "pytorch"); }) == "the trace has no buffers; expected at least one");
}

TEST_CASE("fit knows the devices of dry runs, and two of AMD") {
  REQUIRE(device_budgets().size() == dry::device_presets().size() + 2);
  CHECK(device_budget("mi300x").total == 196592_MiB);
  CHECK(device_budget("mi250").total == 65520_MiB);
  for (std::size_t i = 0; i < dry::device_presets().size(); ++i) {
    const DeviceBudget& device = device_budgets()[i];
    const dry::DevicePreset& preset = dry::device_presets()[i];
    CHECK(device.name == preset.name);
    CHECK(device.total.count() == static_cast<std::int64_t>(preset.total_bytes));
    CHECK(device.context.low.count() == static_cast<std::int64_t>(preset.context_bytes));
    CHECK((device.context.low <= device.context.expected && device.context.expected <= device.context.high));
  }
}

TEST_CASE("the largest batch is predicted by a line through two trials, and confirmed if the next batch does not fit") {
  const auto job = [](std::int64_t fixed, std::int64_t each, std::int64_t capacity) {
    return [=](std::int64_t batch) {
      const std::int64_t bytes = fixed + each * batch;
      return BatchTrial{batch, bytes <= capacity, Bytes{bytes}};
    };
  };
  const auto tried = [](const LargestBatch& found) {
    std::vector<std::int64_t> batches;
    for (const BatchTrial& trial : found.trials) batches.push_back(trial.batch);
    return batches;
  };
  // 100 + 7 b <= 1000, so b is at most 128.
  const LargestBatch found = largest_batch(job(100, 7, 1000), 1000_B, 1 << 20);
  CHECK(found.batch == 128);
  CHECK(tried(found) == std::vector<std::int64_t>{1, 2, 16, 128, 129});  // each batch is at most 8 times the one before
  CHECK_FALSE(largest_batch(job(100, 7, 106), 106_B, 1 << 20).batch);
  CHECK(largest_batch(job(100, 7, 107), 107_B, 1 << 20).batch == 1);
  CHECK(largest_batch(job(100, 0, 1000), 1000_B, 64).batch == 64);  // all batches fit
  // The answer is the same as when all batches are tried, whatever the line predicts.
  for (std::int64_t capacity = 90; capacity < 1500; capacity += 13) {
    const auto attempt = [&](std::int64_t batch) {
      const std::int64_t bytes = 90 + 5 * batch + batch * batch / 9 + (batch > 7 ? 40 : 0);
      return BatchTrial{batch, bytes <= capacity, Bytes{bytes}};
    };
    std::int64_t most = 0;
    while (attempt(most + 1).fits) ++most;
    CHECK(largest_batch(attempt, Bytes{capacity}, 1 << 20).batch.value_or(0) == most);
  }
}

TEST_CASE("the search for the largest batch ends at a trial without a result") {
  const auto search = [](auto&& last) {
    return largest_batch(
        [&](std::int64_t batch) {
          return batch < 16 ? BatchTrial{.batch = batch, .fits = true, .predicted = kMiB * (100 + batch)} : last(batch);
        },
        kMiB * 1000, 1 << 20);
  };
  LargestBatch found =
      search([](std::int64_t batch) { return BatchTrial{.batch = batch, .failed = "the job failed: ValueError: 16"}; });
  CHECK(found.batch == 2);
  CHECK(found.ended == "batch 16: the job failed: ValueError: 16");
  found = search([](std::int64_t batch) { return BatchTrial{.batch = batch, .fits = true, .predicted = kMiB * 50}; });
  CHECK(found.batch == 2);
  CHECK(found.ended == "batch 16: 50 MiB predicted, which is less than the 101 MiB of batch 1");
}

TEST_CASE("a job that died is recorded again on a fake of its device without a limit of memory, and judged again") {
  TraceBuilder build;
  build.alloc({.size = kMiB * 20000});
  const Trace trace = build.finish();
  const Fit fit = predict_fit(trace, t4(), "pytorch");
  using Commands = std::vector<std::string>;
  const std::string record = "tidepool record --dry --torch --device t4 --capacity 4096GiB -o run.tide -- ";
  CHECK(advice_for(trace, fit, {.file = "oom.pickle", .snapshot = true})->commands ==
        Commands{record + "COMMAND", "tidepool fit run.tide --device t4"});
  // 14930 MiB, less 120 MiB of context and 16.25 MiB of workspaces, are left.
  const Bytes left = kMiB * (14930 - 120) - t4().workspace;
  CHECK(advice_for(trace, fit, {.command = {"python3", "my train.py", "--lr=0.1"}})->commands ==
        Commands{record + "python3 'my train.py' --lr=0.1",
                 "tidepool advise run.tide --capacity " + std::to_string(left.count()) + "B"});
}

TEST_CASE("the verdict notes that the trace is of another kind of device") {
  const auto notes = [](const char* key, const char* recorded, const char* device) {
    TraceBuilder build;
    build.free(build.alloc({.size = 1_KiB}));
    TraceData data = build.finish().data();
    data.meta = {{key, recorded}};
    return predict_fit(Trace{std::move(data)}, device_budget(device), "pytorch").notes;
  };
  CHECK(notes("gpu", "NVIDIA A100-SXM4-40GB", "a100-40gb").empty());
  CHECK(notes("gpu", "NVIDIA A100-SXM4-40GB", "a100-80gb").empty());
  CHECK(notes("gpu", "NVIDIA GeForce RTX 3090", "rtx-3090").size() == 1);  // its context is assumed
  CHECK(notes("gpu", "NVIDIA GeForce RTX 3090", "a100-40gb") ==
        std::vector<std::string>{
            "the trace is of a job on NVIDIA GeForce RTX 3090; temporary tensors and workspaces may be others on "
            "a100-40gb: `tidepool record --dry --torch --device a100-40gb` records them"});
  CHECK(notes("gpu", "NVIDIA GeForce RTX 3090", "t4").size() == 2);
  CHECK_THAT(notes("device", "cpu", "a100-40gb").at(0), ContainsSubstring("of a job on the CPU; "));
}

}  // namespace tidepool::fit_test
