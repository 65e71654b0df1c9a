// Jobs of several ranks on the dry device: the trace of each rank, and the job file that joins them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"
#include "traces/job/job.hpp"

namespace tidepool::dry_ranks_test {
namespace {

/// The program of tests/dry/ranks.cpp.
std::string ranks() { return std::filesystem::path{paths::program()}.replace_filename("tidepool_dry_ranks"); }

ProgramResult record(const std::string& output, const std::vector<std::string>& command) {
  std::vector<std::string> all{"record", "--dry", "--devices", "2", "-o", output, "--"};
  all.insert(all.end(), command.begin(), command.end());
  return run_program(all);
}

std::vector<std::string> names(const Job& job) {
  std::vector<std::string> all;
  for (const JobCollective& each : job.collectives) all.push_back(each.name);
  return all;
}

TEST_CASE("a job of two ranks that use NCCL is a trace of each, and a job file that joins them") {
  const ScratchFolder folder;
  const ProgramResult run = record(folder.file("run.tide"), {ranks()});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, ContainsSubstring("run.tide: 2 ranks, 7 collectives of 1 group\n"));
  CHECK_THAT(run.err, ContainsSubstring("the program asked for memory on two devices in one process, which the dry run "
                                        "does not answer\n"));
  const LoadedJob loaded = load_job(folder.file("run.tide"));
  CHECK(names(loaded.job) == std::vector<std::string>{"all_reduce", "all_gather", "all_gather", "reduce_scatter",
                                                      "send", "send", "all_reduce"});
  REQUIRE(loaded.traces.size() == 2);
  for (const JobRank& rank : loaded.job.ranks) CHECK(rank.start == 0_ns);  // not the time at which its process began
  const Trace& trace = loaded.traces[1];
  const JobCollective& gather = loaded.job.collectives[2];
  CHECK(gather.input == 4_MiB);
  CHECK(gather.cost == 10_us);  // half of 8 MiB at 450 GB/s is 9.3 us, less than the least time of a collective
  const Op& op = trace.op(gather.ops[1]);
  CHECK(trace.text(op.name) == "ncclAllGather");
  const auto uses = trace.uses(gather.ops[1]);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].access == Access::kRead);
  CHECK(uses[1].access == Access::kWrite);
  CHECK(uses[1].evidence == Evidence::kSchema);
  CHECK(trace.buffer(trace.version(uses[1].out).buffer).size == 8_MiB);
  CHECK(trace.buffer(trace.version(uses[1].out).buffer).device == 1);
  CHECK(run_program({"simulate", folder.file("run.tide")}).code == 0);
  CHECK(!std::filesystem::exists(folder.file("run.raw")));
}

TEST_CASE("import makes the job of a kept recording of two ranks again, and other commands refuse its folder") {
  const ScratchFolder folder;
  const std::string raw = folder.file("run.raw"), again = folder.file("again.json");
  REQUIRE(run_program({"record", "--dry", "--devices", "2", "--keep-raw", "-o", folder.file("run.tide"), "--", ranks()})
              .code == 0);
  const ProgramResult imported = run_program({"import", raw, "--no-redact", "-o", again});
  CHECK(imported.code == 0);
  CHECK_THAT(imported.err, ContainsSubstring(again + ": 2 ranks, 7 collectives\n"));
  const Job recorded = load_job(folder.file("run.tide")).job, made = load_job(again).job;
  CHECK(made.groups == recorded.groups);
  CHECK(made.collectives == recorded.collectives);
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(made.ranks.at(rank).hash == recorded.ranks.at(rank).hash);
  const ProgramResult refused = run_program({"info", raw});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: " + raw +
                           ": a recording of 2 ranks; expected one rank. `tidepool import` makes a job of it, with a "
                           "trace of each\n");
  CHECK(run_program({"import", raw, "--iteration", "0", "-o", again}).err ==
        "tidepool: " + raw + ": several ranks; expected no --device and --iteration\n");
}

TEST_CASE("a rank that waits for a rank whose process has ended stops with a message") {
  const ScratchFolder folder;
  const ProgramResult run = record(folder.file("run.tide"), {ranks(), "leave"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring(
                 "tidepool dry run: rank 0 of 2 cannot go on in ncclAllReduce (all_reduce 4): rank 1 (process "));
  CHECK_THAT(run.err, ContainsSubstring(") has ended\n"));
  CHECK_THAT(run.err,
             ContainsSubstring("run.tide: 1 more collective is not in the traces of all its ranks; it is a kernel\n"));
}

/// Records a script of tests/dry with torchrun and two ranks. Returns nothing if there is no PyTorch.
/// @param options   of the script
/// @param recorder  further options of `record`
std::optional<LoadedJob> record_script(const std::string& script, const std::vector<std::string>& options = {},
                                       const std::vector<std::string>& recorder = {}) {
  const std::string python = tests::torch_python();
  if (python.empty()) return {};
  const ScratchFolder folder;
  std::vector<std::string> command{"record",
                                   "--dry",
                                   "-o",
                                   folder.file("run.tide"),
                                   "--",
                                   python,
                                   "-m",
                                   "torch.distributed.run",
                                   "--standalone",
                                   "--nproc-per-node",
                                   "2",
                                   paths::source_folder() + "/tests/dry/" + script};
  command.insert(command.begin() + 2, recorder.begin(), recorder.end());
  command.insert(command.end(), options.begin(), options.end());
  const ProgramResult run = run_program(command);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.find("are not in the traces of all their ranks") == std::string::npos);
  CHECK(run_program({"simulate", folder.file("run.tide")}).code == 0);
  LoadedJob job = load_job(folder.file("run.tide"));
  REQUIRE(job.traces.size() == 2);
  return job;
}

/// Sum and number of the inputs of at least `least` bytes, over all collectives of this name.
std::pair<Bytes, int> inputs(const Job& job, const std::string& name, Bytes least) {
  std::pair<Bytes, int> sum;
  for (const JobCollective& each : job.collectives)
    if (each.name == name && each.input >= least) sum.first += *each.input, ++sum.second;
  return sum;
}

TEST_CASE("torchrun's processes are the ranks of a job, and their gradients are reduced as in DDP") {
  const auto job = record_script("ddp.py");  // the script itself checks the values that ranks exchange
  if (!job) return;
  // Three steps of four linear layers of 512 with biases, in 32 bits. All other reductions are of single numbers of at
  // most 8 bytes.
  constexpr std::int64_t kGradients = 4 * (512 * 512 + 512) * 4;
  CHECK(inputs(job->job, "all_reduce", 9_B).first == Bytes{3 * kGradients});
  for (const Trace& trace : job->traces) CHECK(trace.data().losses.unmatched_frees == 0);
}

TEST_CASE("FSDP2 gathers blocks twice a step, and reduces gradients once") {
  const auto job = record_script(
      "fsdp2.py", {"--layers", "2", "--width", "256", "--heads", "4", "--vocabulary", "1024", "--tokens", "128"});
  if (!job) return;
  constexpr std::int64_t kWidth = 256, kVocabulary = 1024, kTokens = 128, kLayers = 2, kSteps = 2, kRanks = 2;
  constexpr std::int64_t kBlock = 12 * kWidth * kWidth + 13 * kWidth;
  constexpr std::int64_t kRoot = (2 * kVocabulary + kTokens + 2) * kWidth;
  // Gathers are in bfloat16; their input is one rank's part. The root keeps its gathered parameters from the forward
  // pass on, so they are gathered once a step.
  CHECK(inputs(job->job, "all_gather", 1_KiB) ==
        std::pair{Bytes{kSteps * (2 * kLayers * kBlock + kRoot) * 2 / kRanks}, int{kSteps * (2 * kLayers + 1)}});
  // Reductions are in 32 bits; their input is all ranks' parts.
  CHECK(inputs(job->job, "reduce_scatter", 1_KiB) ==
        std::pair{Bytes{kSteps * (kLayers * kBlock + kRoot) * 4}, int{kSteps * (kLayers + 1)}});
}

/// The copies of this name whose buffer on the device has at least `least` bytes: sum of these bytes, and number.
std::pair<Bytes, int> copies(const Trace& trace, std::string_view name, Bytes least) {
  std::pair<Bytes, int> sum;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    if (trace.text(trace.ops()[i].name) != name) continue;
    const Use& use = trace.uses(OpId{i})[0];
    const Bytes size = trace.buffer(trace.version(use.in.valid() ? use.in : use.out).buffer).size;
    if (size >= least) sum.first += size, ++sum.second;
  }
  return sum;
}

TEST_CASE("FSDP2 with offloading brings each shard to the device twice a step, and its gradient to the host once") {
  const auto job = record_script("offload.py");  // the script checks that nothing is left on the device after a step
  if (!job) return;
  constexpr std::int64_t kSteps = 2, kLayers = 6, kLayer = 1024 * 1024 * 4, kShard = kLayer / 2;
  for (const Trace& trace : job->traces) {
    // Once, before the steps, each layer comes to the device, and the rank's shard of it goes back.
    CHECK(copies(trace, "memcpy HtoD", 1_MiB) ==
          std::pair{Bytes{kLayers * kLayer + 2 * kSteps * kLayers * kShard}, int{kLayers + 2 * kSteps * kLayers}});
    CHECK(copies(trace, "memcpy DtoH", 1_MiB) ==
          std::pair{Bytes{(1 + kSteps) * kLayers * kShard}, int{(1 + kSteps) * kLayers}});
  }
}

TEST_CASE("with --like-ranks, ranks of a dry job that do the same share one trace") {
  // The ops must be operators (--torch): kernels' parameters have words that nobody set, which differ between ranks.
  const auto job = record_script(
      "fsdp2.py", {"--layers", "2", "--width", "256", "--heads", "4", "--vocabulary", "1024", "--tokens", "128"},
      {"--torch", "--like-ranks"});
  if (!job) return;
  CHECK(job->job.ranks[1].trace == "run.rank0.tide");
  CHECK(job->job.ranks[1].hash == job->job.ranks[0].hash);
}

TEST_CASE("PyTorch's operators of a sharded model are recorded on each rank alike, on one device") {
  const auto job = record_script(
      "fsdp2.py", {"--layers", "2", "--width", "256", "--heads", "4", "--vocabulary", "1024", "--tokens", "128"},
      {"--torch"});
  if (!job) return;
  for (const Trace& trace : job->traces) {
    CHECK(trace.ideal_peak() == job->traces[0].ideal_peak());
    std::set<std::uint16_t> devices;
    std::map<std::string_view, Bytes> parameters;
    for (const Buffer& buffer : trace.buffers()) {
      devices.insert(buffer.device);
      if (buffer.kind == BufferKind::kParameter) parameters[trace.text(buffer.name)] = buffer.size;
    }
    CHECK(devices.size() == 1);
    CHECK(parameters["blocks.1.up.weight"] == Bytes{4 * 256 * 256 * 4 / 2});  // in 32 bits, half on each rank
    CHECK(std::any_of(trace.ops().begin(), trace.ops().end(),
                      [&](const Op& op) { return trace.text(op.module) == "blocks.1.up"; }));
  }
}

TEST_CASE("stages of a pipeline send each micro-batch forward, and its gradient back") {
  const auto job =
      record_script("pipeline.py", {"--layers", "1", "--width", "64", "--tokens", "32", "--micro-batches", "4"});
  if (!job) return;
  constexpr int kSteps = 2, kMicroBatches = 4;
  CHECK(inputs(job->job, "send", 1_KiB) ==
        std::pair{Bytes{2 * kSteps * kMicroBatches * 32 * 64 * 4}, 2 * kSteps * kMicroBatches});
}

TEST_CASE("ranks exchange Python objects as tensors on devices, and stages of a pipeline send each other shapes") {
  const auto job = record_script("objects.py");
  if (!job) return;
  constexpr int kSteps = 2, kMicroBatches = 4;
  CHECK(inputs(job->job, "send", 8_KiB) ==
        std::pair{Bytes{2 * kSteps * kMicroBatches * 8 * 256 * 4}, 2 * kSteps * kMicroBatches});
}

TEST_CASE("sizes computed from exchanged ones are right although these are overwritten or freed before") {
  record_script("sizes.py");  // the script itself checks the sizes
}

TEST_CASE("tensor parallelism reduces activations, and a sharded optimizer broadcasts its updated parameters") {
  const auto job = record_script("tensor_parallel.py");
  if (!job) return;
  constexpr int kSteps = 2, kLayers = 4;
  CHECK(inputs(job->job, "all_reduce", 8_KiB) == std::pair{Bytes{kSteps * 8 * 256 * 4}, kSteps});
  CHECK(inputs(job->job, "broadcast", 256_KiB) == std::pair{Bytes{kSteps * kLayers * 256 * 256 * 4}, kSteps * kLayers});
}

}  // namespace
}  // namespace tidepool::dry_ranks_test
