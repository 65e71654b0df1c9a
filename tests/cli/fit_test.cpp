#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/pickle_writer.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"
#include "tests/trace_file.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::fit_test {

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;
using tests::Pickled;

namespace {

const std::string kSample = paths::source_folder() + "/traces/samples/gpt2.tide";

}  // namespace

TEST_CASE("tidepool fit begins with the verdict") {
  ProgramResult result = run_program({"fit", kSample, "--device", "a100-40gb"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("fits: 15.67 of 39.38 GiB, margin 23.71 GiB\n"));
  CHECK_THAT(result.out, ContainsSubstring("\nworkspaces  16.25 MiB of cuBLAS, which the recording does not have\n"));
  CHECK_THAT(result.out,
             ContainsSubstring("\npeak        before op 242 (aten::_log_softmax_backward_data)\n"
                               "allocator   PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True reserves 120 MiB less: "
                               "14.13 GiB\n"));
  result = run_program({"fit", kSample, "--device", "t4"});  // the message says that the verdict is not certain
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("fits: 14.38 of 14.58 GiB, margin 205.8 MiB; not for certain, it may be 15.38 "
                                    "GiB\n"));
  CHECK_THAT(result.err, ContainsSubstring("the context on t4 is assumed, not measured"));
}

TEST_CASE("tidepool fit of a dry run's trace judges the device of the run, unless another one is named") {
  const ScratchFolder folder;
  TraceData data = load_trace(kSample).data();
  data.meta["setting.dry_device"] = "t4";
  const std::string path = tests::write_trace(folder, "dry", Trace{data});
  CHECK(run_program({"fit", path}).out == run_program({"fit", path, "--device", "t4"}).out);
  const ProgramResult unknown = run_program({"fit", kSample});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, StartsWith("tidepool: --device: expected the device that the job is for: h100-80gb, "));
}

TEST_CASE("tidepool fit judges a device with the memory that is given") {
  const ProgramResult less = run_program({"fit", kSample, "--device", "t4", "--capacity", "11.6GiB"});
  CHECK(less.code == 0);
  CHECK_THAT(less.out, StartsWith("does not fit: "));
  CHECK_THAT(less.out, ContainsSubstring(" of 11.60 GiB, "));
  CHECK_THAT(less.out, ContainsSubstring("/gpt2.tide on t4 with 11.6 GiB\n"));
  const Json more = Json::parse(run_program({"fit", kSample, "--device", "t4", "--capacity", "40GiB", "--json"}).out);
  CHECK(more.at("capacity_bytes") == std::int64_t{40} << 30);
  CHECK(more.at("device") == "t4");
  CHECK((more.at("fits") == true && more.at("certain") == true));
}

TEST_CASE("tidepool fit judges one job for several devices") {
  const ProgramResult texts = run_program({"fit", kSample, "--device", "a100-40gb,rtx-4060"});
  CHECK(texts.code == 0);
  CHECK_THAT(texts.out, StartsWith("fits: 15.67 of 39.38 GiB, margin 23.71 GiB\n"));
  CHECK_THAT(texts.out, ContainsSubstring("\n\ndoes not fit: "));
  CHECK_THAT(texts.out, ContainsSubstring(" on rtx-4060\n"));
  std::istringstream lines{run_program({"fit", kSample, "--device", "rtx-3060,rtx-4080,rtx-4060", "--json"}).out};
  std::vector<std::string> devices;
  for (std::string line; std::getline(lines, line);) devices.push_back(Json::parse(line).at("device"));
  CHECK(devices == std::vector<std::string>{"rtx-3060", "rtx-4080", "rtx-4060"});
}

TEST_CASE("tidepool fit judges the device of a snapshot that has memory, and names the event of the peak") {
  const auto event = [](const char* action, std::int64_t address, std::int64_t mib, std::int64_t time) {
    return Pickled::dict({{"action", Pickled::text(action)},
                          {"addr", Pickled::whole(address)},
                          {"size", Pickled::whole(mib << 20)},
                          {"time_us", Pickled::whole(time)}});
  };
  const auto block = [](std::int64_t address, std::int64_t mib) {
    return Pickled::dict({{"address", Pickled::whole(address)},
                          {"size", Pickled::whole(mib << 20)},
                          {"state", Pickled::text("active_allocated")}});
  };
  const Pickled segment = Pickled::dict({{"device", Pickled::whole(1)},
                                         {"address", Pickled::whole(1 << 30)},
                                         {"total_size", Pickled::whole(512 << 20)},
                                         {"segment_type", Pickled::text("large")},
                                         {"blocks", Pickled::list({block(1 << 30, 32)})}});
  const Pickled history = Pickled::list({event("alloc", 1 << 29, 64, 1000), event("free_requested", 1 << 29, 64, 2000),
                                         event("free_completed", 1 << 29, 64, 3000)});
  const ScratchFolder folder;
  const std::string path = folder.file("s.pickle");
  std::ofstream{path} << Pickled::dict({{"segments", Pickled::list({segment})},
                                        {"device_traces", Pickled::list({Pickled::list({}), history})}})
                             .pickle();
  const ProgramResult result = run_program({"fit", path, "--device", "t4"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("\npeak        at event 1 of 3\n"));
  CHECK_THAT(result.out, ContainsSubstring("\nrecorded    512 MiB reserved at most\n"));
  CHECK_THAT(result.out, ContainsSubstring("\nreserved    512 MiB by PyTorch's allocator, 96 MiB alive at the peak\n"));
  CHECK(result.out.find(" less: ") == std::string::npos);  // what is compared is a model, not the 512 MiB
  CHECK(result.err.find("devices have memory") == std::string::npos);
}

TEST_CASE("the parts of tidepool fit's prediction add up") {
  const ProgramResult result = run_program({"fit", kSample, "--device", "rtx-4090", "--json"});
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  const auto bytes = [&](const char* key) { return json.at(key).get<std::int64_t>(); };
  CHECK(json.at("fits") == true);
  CHECK(json.at("device") == "rtx-4090");
  CHECK(bytes("predicted_bytes") == bytes("reserved_bytes") + bytes("context_bytes") + bytes("workspace_bytes"));
  CHECK(bytes("margin_bytes") == bytes("capacity_bytes") - bytes("predicted_bytes"));
  CHECK((bytes("low_bytes") <= bytes("predicted_bytes") && bytes("predicted_bytes") <= bytes("high_bytes")));
  CHECK(json.at("peak_at").at("op") == 242);
  std::int64_t held = 0;
  for (const Json& holder : json.at("holders")) held += holder.at("bytes").get<std::int64_t>();
  CHECK(held == bytes("live_bytes"));
  CHECK_FALSE(json.contains("largest_batch"));
}

TEST_CASE("a job that does not fit is a result") {
  const ScratchFolder folder;
  std::ofstream{folder.file("large.jsonl")} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                                            << "\n{\"alloc\":0,\"size_bytes\":21474836480}\n";
  const ProgramResult result = run_program({"fit", folder.file("large.jsonl"), "--device", "t4"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, StartsWith("does not fit: 20.13 of 14.58 GiB, 5.553 GiB too much\n"));
  CHECK_THAT(
      result.out,
      ContainsSubstring("\nwhat to do: 14.45 GiB are left for the step's tensors\n"
                        "  no advice yet: no forward op has a module, so nothing can be said of modules; expected "
                        "a training step as recorded by `tidepool record --torch` or `record --dry --torch`\n"
                        "  commands that lead to advice:\n    tidepool record --dry --torch --device t4 --capacity "
                        "4096GiB -o run.tide -- COMMAND\n"
                        "    tidepool advise run.tide --capacity "));
}

TEST_CASE("a job that does not fit gets the best change of each kind") {
  const std::string job = paths::source_folder() + "/traces/samples/gpt2_xl.tide";
  const Json json = Json::parse(run_program({"fit", job, "--device", "t4", "--json"}).out);
  const Json& advice = json.at("advice");
  // The excess must be removed from the tensors that are live at the peak.
  CHECK(advice.at("capacity_bytes").get<std::int64_t>() ==
        json.at("live_bytes").get<std::int64_t>() + json.at("margin_bytes").get<std::int64_t>());
  std::vector<std::string> kinds;
  for (const Json& change : advice.at("changes")) kinds.push_back(change.at("kind"));
  std::sort(kinds.begin(), kinds.end());
  CHECK(kinds == std::vector<std::string>{"batch", "budget", "checkpoint", "offload", "selective-checkpoint"});
  CHECK(advice.at("commands").size() == 1);
  const ProgramResult result = run_program({"fit", job, "--device", "t4"});
  CHECK_THAT(result.out, ContainsSubstring("alive at the peak, time +1.4 %; not enough\n"));
  CHECK_THAT(result.out, ContainsSubstring("    " + advice.at("commands").at(0).get<std::string>() + "\n"));
}

TEST_CASE("tidepool fit records a command dry, and judges the memory that PyTorch's allocator reserves") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const std::string reserved = folder.file("reserved");
  const ProgramResult result = run_program({"fit", "--device", "rtx-3090", "--json", "--", python,
                                            paths::source_folder() + "/tests/dry/reserved.py", reserved});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json.at("fits") == true);
  CHECK(json.at("workspaces_recorded") == true);
  CHECK(json.at("workspace_bytes") == 0);
  CHECK(json.at("reserved_bytes") == std::stoll(content_of(reserved)));
  CHECK(json.at("notes").size() == 1);  // the only note says that the context is assumed
}

TEST_CASE("tidepool fit cannot judge a job that ended before a training step") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const std::string script = "import torch; kept = torch.zeros(1 << 20, device='cuda'); raise ValueError('no data')";
  const auto begin = std::chrono::steady_clock::now();
  ProgramResult result = run_program({"fit", "--device", "rtx-3090", "--", python, "-c", script});
  const auto took = std::chrono::steady_clock::now() - begin;
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK_THAT(result.out, StartsWith("cannot tell: the job ended before a training step; until then "));
  CHECK_THAT(result.err, ContainsSubstring(": the job ended before a training step: ValueError: no data\n"));
  CHECK_THAT(result.err, ContainsSubstring(": in a dry run, kernels compute nothing and their results are zeros, "));
  CHECK_THAT(result.err, !ContainsSubstring("tidepool: in a dry run, "));  // once
  // Time enough to import PyTorch: more than three times as long as the whole job above.
  const std::string seconds = std::to_string(3 + 3 * std::chrono::ceil<std::chrono::seconds>(took).count());
  result = run_program({"fit", "--device", "rtx-3090", "--json", "--seconds", seconds, "--", python, "-c",
                        "import time, torch; kept = torch.zeros(9, device='cuda'); time.sleep(600)"});
  CHECK(result.code == 1);
  const Json json = Json::parse(result.out);
  CHECK(json.at("fits").is_null());
  CHECK(json.at("notes").at(0) == "the job was stopped after " + seconds + " s, before a training step");
}

TEST_CASE("tidepool fit that is given a Python script as a trace says how a script is judged") {
  const ScratchFolder folder;
  const std::string script = folder.file("train.py");
  std::ofstream{script} << "import torch\n";
  const ProgramResult result = run_program({"fit", script, "--device", "rtx-3090"});
  CHECK(result.code == 2);
  CHECK(result.err ==
        "tidepool: " + script +
            ": a Python script; expected a trace or a snapshot, or a command after --, as in -- python3 " + script +
            "\n");
}

TEST_CASE("tidepool fit cannot judge a job that was stopped before it used the device") {
  for (const bool with_json : {false, true}) {
    std::vector<std::string> arguments{"fit", "--device", "rtx-3090", "--seconds", "1", "--", "sleep", "60"};
    if (with_json) arguments.insert(arguments.begin() + 1, "--json");
    const ProgramResult result = run_program(arguments);
    const std::string said = "the job was stopped after 1 s, before it used the device; --seconds gives it more time";
    CHECK(result.code == 1);
    CHECK(result.err.empty());
    if (with_json)
      CHECK(Json::parse(result.out) ==
            Json{{"job", "sleep 60"}, {"device", "rtx-3090"}, {"fits", nullptr}, {"notes", {said}}});
    else
      CHECK(result.out == "cannot tell: " + said + "\n");
  }
}

TEST_CASE("tidepool fit --batch ends with the largest known batch when a job fails") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const std::string script =
      "import sys, torch\n"
      "batch = int(sys.argv[1])\n"
      "model = torch.nn.Linear(64, 64).cuda()\n"
      "optimizer = torch.optim.SGD(model.parameters())\n"
      "for _ in range(2):\n"
      "    model(torch.zeros(batch, 64, device='cuda')).sum().backward()\n"
      "    optimizer.step()\n"
      "if batch > 1: raise ValueError('too large')\n";
  const ProgramResult result = run_program({"fit", "--device", "t4", "--batch", "--", python, "-c", script, "{batch}"});
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK_THAT(result.out, StartsWith("fits: "));
  CHECK_THAT(result.out, ContainsSubstring("\nbatch 2: the job failed: ValueError: too large; 1 is the largest that "
                                           "was seen to fit\n"));
}

TEST_CASE("tidepool fit that is interrupted leaves nothing behind") {
  const ScratchFolder folder;
  const std::string pid = folder.file("pid");
  const std::string script =
      "TMPDIR='" + folder.file("") + "' '" + paths::program() + "' fit --device t4 -- sh -c 'echo $$ >" + pid +
      "; exec sleep 600' 2>/dev/null & until [ -s " + pid + " ]; do sleep 0.1; done; kill $!; wait $!; test $? = 143";
  CHECK(std::system(script.c_str()) == 0);
  const std::string gone =
      "for i in $(seq 600); do kill -0 $(cat " + pid + ") 2>/dev/null || exit 0; sleep 0.1; done; exit 1";
  CHECK(std::system(gone.c_str()) == 0);
  for (const auto& entry : std::filesystem::directory_iterator{folder.file("")})
    CHECK(entry.path().filename() == "pid");
}

TEST_CASE("tidepool fit prints its estimate for workspaces of cuDNN") {
  const std::string job = paths::source_folder() + "/traces/samples/vgg16.tide";
  const ProgramResult result = run_program({"fit", job, "--device", "t4"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             ContainsSubstring("            3.445 GiB of cuDNN, assumed: 2.25 times input and output of the "
                               "largest convolution; low is without\n"));
}

TEST_CASE("tidepool fit says why a command was not recorded") {
  const ProgramResult result = run_program({"fit", "--device", "t4", "--", "true"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, StartsWith("tidepool: true: nothing was recorded\n"));
  CHECK_THAT(result.err, ContainsSubstring("no process of the job used the CUDA runtime"));
}

TEST_CASE("tidepool fit refuses commands and traces that it cannot judge") {
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fit");
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  const std::string script = paths::source_folder() + "/traces/samples/make.sh";
  CHECK_THAT(refusal({script, "--device", "t4"}),
             StartsWith("tidepool: " + script + ": text in no form that tidepool reads; known: "));
  CHECK_THAT(refusal({"no/such.tide", "--device", "t4"}), StartsWith("tidepool: no/such.tide: "));
  CHECK(refusal({"--device", "t4"}) ==
        "tidepool: fit: nothing to judge; expected a trace or a snapshot, or a command after --, as in -- python3 "
        "train.py\n");
  CHECK(refusal({"--device", "t4", "python3", "train.py"}) ==
        "tidepool: python3 train.py: 2 words; expected one trace or snapshot, or a command after --, as in -- python3 "
        "train.py\n");
  CHECK(refusal({"--device", "t4", "a.tide", "--", "python3", "train.py"}) ==
        "tidepool: a.tide -- python3 train.py: a trace and a command; expected one of them\n");
  CHECK(refusal({kSample, "--device", "t4", "--seconds", "0"}) ==
        "tidepool: --seconds: 0: expected a whole number from 1\n");
  const ScratchFolder folder;
  const std::string head = R"({"tidepool":1,"streams":["0"],"strings":[""]})";
  std::ofstream{folder.file("empty.jsonl")} << head << "\n";
  CHECK(refusal({folder.file("empty.jsonl"), "--device", "t4"}) ==
        "tidepool: " + folder.file("empty.jsonl") + ": the trace has no buffers; expected at least one\n");
  std::ofstream{folder.file("two.jsonl")} << head << "\n{\"alloc\":0,\"size_bytes\":8}\n"
                                          << "{\"alloc\":1,\"size_bytes\":8,\"device\":1}\n";
  CHECK(refusal({folder.file("two.jsonl"), "--device", "t4"}) ==
        "tidepool: " + folder.file("two.jsonl") +
            ": the trace is of 2 devices; expected one, as `fit` judges one "
            "(tidepool import --device keeps one)\n");
  const std::string unknown = refusal({kSample, "--device", "rtx-4091"});
  CHECK_THAT(unknown, StartsWith("tidepool: no device named 'rtx-4091', did you mean 'rtx-4090'?; known: h100-80gb, "));
  CHECK_THAT(unknown,
             EndsWith(", mi250; for another device, name the one most like it, and the size of its memory with "
                      "--capacity\n"));
  CHECK(refusal({kSample, "--device", "t4", "--capacity", "12"}) ==
        "tidepool: --capacity: '12' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, "
        "G or T, as in 512MiB\n");
  CHECK(refusal({kSample, "--device", "t4", "--batch"}) ==
        "tidepool: --batch: " + kSample +
            " was recorded with one batch size; expected a command with {batch}, as in -- python3 train.py "
            "--batch-size {batch}\n");
  CHECK(refusal({"--device", "t4", "--batch", "--", "python3", "train.py"}) ==
        "tidepool: --batch: the command has no {batch}; expected it where the job takes its batch size, as in -- "
        "python3 train.py --batch-size {batch}\n");
  CHECK(refusal({"--device", "t4", "--", "python3", "train.py", "{batch}"}) ==
        "tidepool: {batch}: expected --batch too, which tries batch sizes there\n");
  CHECK(refusal({kSample, "--device", "t4", "--pool", "bfc"}) ==
        "tidepool: --pool: 'bfc' is no allocator of PyTorch; expected pytorch or pytorch-expandable\n");
}

TEST_CASE("tidepool fit cannot judge a recorded job that ran out of memory on a device that is not known") {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name, const std::string& phase) {
    std::ofstream{folder.file(name)} << R"({"tidepool":1,"meta":{"failure":"OutOfMemoryError: CUDA out of memory."}})"
                                     << "\n{\"alloc\":0,\"size_bytes\":1073741824}\n"
                                     << R"({"run":"gemm","uses":[[0,"write","schema"]],"phase":")" << phase << "\"}\n";
    return run_program({"fit", folder.file(name), "--device", "t4"});
  };
  const ProgramResult early = write("early.jsonl", "unknown");
  CHECK(early.code == 1);
  CHECK_THAT(
      early.out,
      StartsWith("cannot tell: the job ran out of memory where it was recorded; until then 1.13 of 14.58 GiB\n"));
  CHECK_THAT(early.err, ContainsSubstring("early.jsonl: the job ran out of memory where it was recorded: "
                                          "OutOfMemoryError: CUDA out of memory.\n"));
  const ProgramResult late = write("late.jsonl", "backward");
  CHECK(late.code == 1);
  CHECK(late.out.substr(0, late.out.find('\n')) == early.out.substr(0, early.out.find('\n')));
  CHECK_THAT(late.err,
             ContainsSubstring("late.jsonl: the job ran out of memory; what it would need beyond is not known\n"));
}

TEST_CASE("tidepool fit cannot judge a trace that ends before a training step") {
  const ScratchFolder folder;
  const std::string path = folder.file("forward.jsonl");
  std::ofstream{path} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                      << "\n{\"alloc\":0,\"size_bytes\":1073741824}\n"
                      << R"({"run":"aten::mm","uses":[[0,"write","schema"]],"phase":"forward"})"
                      << "\n";
  const ProgramResult result = run_program({"fit", path, "--device", "t4"});
  CHECK(result.code == 1);
  CHECK_THAT(result.out,
             StartsWith("cannot tell: the trace ends before a training step; until then 1.13 of 14.58 GiB\n"));
  CHECK_THAT(result.err, ContainsSubstring(path + ": the trace ends before a training step\n"));
}

TEST_CASE("tidepool fit says what a trace lacks") {
  const ScratchFolder folder;
  TraceBuilder build;
  build.meta()["lacks"] = "the events before its recording began";
  build.alloc({.size = 8_B});
  const std::string path = tests::write_trace(folder, "late", build.finish());
  CHECK_THAT(run_program({"fit", path, "--device", "t4"}).err,
             ContainsSubstring(path + ": it lacks the events before its recording began\n"));
}

}  // namespace tidepool::fit_test
