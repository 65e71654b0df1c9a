#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tracer/dry/preset.hpp"
#include "traces/base/input.hpp"

namespace tidepool::gpu_day_test {

namespace fs = std::filesystem;

namespace {

/// Runs tests/gpu/gpu_day.sh with `folder` as working directory: relative paths in `arguments` are in it.
ProgramResult gpu_day(const ScratchFolder& folder, const std::string& arguments) {
  const std::string line = "cd '" + folder.file("") + "' && '" + paths::source_folder() + "/tests/gpu/gpu_day.sh' " +
                           arguments + " >out 2>err </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder.file("out")), content_of(folder.file("err"))};
}

/// Writes a shell script of these lines as the file "program".
void write_program(const ScratchFolder& folder, const std::string& lines) {
  write_file(folder.file("program"), "#!/bin/sh\n" + lines);
  REQUIRE(std::system(("chmod +x '" + folder.file("program") + "'").c_str()) == 0);
}

std::vector<std::string> results_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder}) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The content of one file of the packed results of call a or c; "" if there are none.
std::string packed(const ScratchFolder& folder, const std::string& name) {
  fs::remove_all(folder.file("unpacked"));
  CHECK(gpu_day(folder, "unpack results unpacked").code == 0);
  const fs::path unpacked = folder.file("unpacked");
  for (const std::string call : {"a", "c"})
    if (fs::exists(unpacked / call)) return content_of(unpacked / call / name);
  return "";
}

}  // namespace

TEST_CASE("each call of the day with a GPU prints its steps on any machine, the most valuable first") {
  const ScratchFolder folder;
  const auto steps = [&](const std::string& call) {
    const ProgramResult result = gpu_day(folder, call + " results --dry-run --plans .");
    CHECK(result.code == 0);
    std::vector<std::string> names;
    std::istringstream lines{result.out};
    for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
    return names;
  };
  write_file(folder.file("01-vgg16-tide-0.6x.plan.gz"), "");
  write_file(folder.file("02-vgg16-autoswap-0.7x.plan.gz"), "");
  using Names = std::vector<std::string>;
  CHECK(steps("a") == Names{"kernels", "system", "calibrate", "capture-gpt2", "plan-01-vgg16-tide-0.6x",
                            "plan-02-vgg16-autoswap-0.7x", "tables", "questions"});
  CHECK(steps("b") == Names{"kernels", "alone-gpt2", "capture-gpt2", "pointers-gpt2", "alone-resnet50",
                            "capture-resnet50", "pointers-resnet50", "alone-bert_large", "capture-bert_large",
                            "pointers-bert_large", "alone-llama", "capture-llama", "pointers-llama", "tables"});
  CHECK(steps("c") ==
        Names{"kernels", "calibrate", "plan-01-vgg16-tide-0.6x", "plan-02-vgg16-autoswap-0.7x-graph", "tables"});
  CHECK(steps("d") == Names{"kernels", "calibrate", "losses-alone", "live-plan", "live", "live-needs-plan",
                            "events-real", "events-dry", "offload", "published", "live-others", "tables"});
  CHECK(!fs::exists(folder.file("results")));
}

TEST_CASE("a bundle compiles its kernels for the same devices as a build of the program") {
  const auto devices_in = [](const std::string& path) {
    const std::string text = content_of(paths::source_folder() + path);
    const std::regex device{"arch=\\w+,code=\\w+"};
    return std::set<std::string>(std::sregex_token_iterator{text.begin(), text.end(), device}, {});
  };
  CHECK(devices_in("/tests/gpu/gpu_day.sh") == devices_in("/validator/cuda/cuda.cmake"));
}

TEST_CASE("a call continues after a step that fails, and packs the files of every step") {
  const ScratchFolder folder;
  write_program(folder, "case $1 in --version) echo version 7;; *) echo no $1 here; exit 3;; esac\n");
  const ProgramResult result =
      gpu_day(folder, "a results --program ./program --python /no/python --plans . --work work");
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("failed with 3: no calibrate here\n"));
  CHECK_THAT(result.out, ContainsSubstring("nothing to do: the program has its kernels\n"));
  CHECK_THAT(content_of(folder.file("results/summary-a.txt")), ContainsSubstring(result.out));
  CHECK(packed(folder, "calibrate.log") == "no calibrate here\n");
  CHECK_THAT(packed(folder, "system.log"), ContainsSubstring("version 7\n"));
  CHECK(packed(folder, "summary-a.txt") == content_of(folder.file("results/summary-a.txt")));
  CHECK(results_in(folder.file("results")).size() == 2);
}

TEST_CASE("the dry run of a day with a GPU takes the preset of the present device, or else that of an H100") {
  const ScratchFolder folder;
  const auto preset_of = [&](std::string_view device) {
    write_program(folder, fmt::format("echo '{}'\n", device));
    const std::string line = "cd '" + folder.file("") +
                             "' && GPU_DAY_PROGRAM= GPU_DAY_PYTHON=./program GPU_DAY_PLANS= GPU_DAY_WORK= "
                             "GPU_DAY_MODELS= GPU_DAY_RECORD= GPU_DAY_SMALL= '" +
                             paths::source_folder() + "/tests/gpu/gpu_day.sh' --step dry_device >out 2>err </dev/null";
    CHECK(std::system(line.c_str()) == 0);
    return content_of(folder.file("out")) + content_of(folder.file("err"));
  };
  for (const dry::DevicePreset& preset : dry::device_presets())
    CHECK(preset_of(preset.device_name) == std::string{preset.name} + "\n");
  CHECK(preset_of("NVIDIA TITAN V") == "h100-80gb\nno preset for this device; h100-80gb stands in\n");
}

TEST_CASE("captures record tensors and keep raw files, and the plan of the live run is for operators") {
  const ScratchFolder folder;
  write_program(folder,
                "echo \"$@\"\ncase $1 in record) mkdir -p work/live-kernels.raw; touch work/live-kernels.raw/x;; "
                "import) touch work/live.tide;; esac\n");
  CHECK(gpu_day(folder, "d results --program ./program --python true --plans . --work work").code == 1);
  const std::string live = content_of(folder.file("work/live-plan.log"));
  CHECK_THAT(live, ContainsSubstring("record --torch --kernels --keep-raw --skip 3 --iterations 1 "));
  CHECK_THAT(live, ContainsSubstring("import ") && ContainsSubstring("/live.raw -o "));
  CHECK_THAT(live, ContainsSubstring("/live.tide --first --policy tide --capacity 0.6x "));
  CHECK(gpu_day(folder, "b results --program ./program --python true --work work --models gpt2").code == 0);
  CHECK_THAT(content_of(folder.file("work/capture-gpt2.log")),
             ContainsSubstring("record --torch --kernels --keep-raw --skip 3 --iterations 3 "));
}

TEST_CASE("a call ends before its time is up, and names the steps that it left out") {
  // Each plan may take 60 s, more than the call has. On a busy machine, the call's time may be up before the first
  // plan; then the call is repeated with more time.
  ProgramResult result;
  for (const int seconds : {6, 20, 50}) {
    const ScratchFolder folder;
    write_file(folder.file("01-vgg16-tide-0.6x.plan.gz"), "");
    write_file(folder.file("02-vgg16-tide-0.6x.plan.gz"), "");
    write_program(folder, "case $1 in calibrate) echo calibrated;; *) echo begun; sleep 600;; esac\n");
    const auto begin = std::chrono::steady_clock::now();
    result = gpu_day(folder, fmt::format("c results --program ./program --python true --plans . --work work "
                                         "--seconds {}",
                                         seconds));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{300});
    const std::size_t first = result.out.find("plan-01-vgg16-tide-0.6x");
    if (first != std::string::npos && result.out.find(" s  not done within ", first) != std::string::npos) break;
  }
  CHECK(result.code == 1);
  CHECK_THAT(result.out, ContainsSubstring("plan-01-vgg16-tide-0.6x"));
  CHECK_THAT(result.out, ContainsSubstring(" s  not done within "));
  CHECK_THAT(result.out, ContainsSubstring("plans from 02 on                          -  no time left\n"));
  CHECK_THAT(result.out, ContainsSubstring("tables"));
}

TEST_CASE("whenever a call is killed, its finished steps are kept") {
  const ScratchFolder folder;
  write_program(folder, "case $1 in calibrate) echo calibrated;; *) touch begun; sleep 60;; esac\n");
  write_file(folder.file("01-vgg16-tide-0.6x.plan.gz"), "");
  const std::string line =
      "cd '" + folder.file("") + "' && { '" + paths::source_folder() +
      "/tests/gpu/gpu_day.sh' c results --program ./program --python true --plans . --work work "
      ">out 2>&1 & pid=$!; for i in $(seq 3000); do [ -e work/begun ] || [ -e begun ] && break; sleep "
      "0.1; done; kill -KILL $pid; }";
  CHECK(std::system(line.c_str()) == 0);
  CHECK_THAT(packed(folder, "calibrate.log"), ContainsSubstring("calibrated\n"));
}

TEST_CASE("at whatever moment a call is killed, the old or the new set of its results is complete") {
  // The packed results have three pieces, so that replacing them takes long.
  const ScratchFolder folder;
  write_program(folder,
                "case $1 in calibrate) head -c 36000000 /dev/urandom >work/large; echo calibrated;;\n"
                "*) sleep 0.1; echo \"{}\";; esac\n");
  for (const std::string number : {"01", "02", "03", "04"})
    write_file(folder.file(number + "-vgg16-tide-0.6x.plan.gz"), "");
  // Moving a piece takes a while, so that some of the calls are killed between two pieces.
  fs::create_directories(folder.file("slow"));
  write_file(folder.file("slow/mv"), "#!/bin/sh\nsleep 0.15\nexec /bin/mv \"$@\"\n");
  REQUIRE(std::system(("chmod +x '" + folder.file("slow/mv") + "'").c_str()) == 0);
  int killed = 0;
  for (const int wait_ms : {900, 1300, 1700, 2100, 2500, 2900, 3300}) {
    for (const std::string name : {"results", "work", "unpacked"}) fs::remove_all(folder.file(name));
    fs::create_directories(folder.file("work"));
    const std::string call = "'" + paths::source_folder() +
                             "/tests/gpu/gpu_day.sh' c results --program ./program --python true --plans . --work "
                             "work --most 60";
    write_file(folder.file("kill.sh"),
               fmt::format("cd '{0}'\nPATH='{0}/slow':$PATH setsid {1} >out 2>&1 &\npid=$!\nsleep {2}\n"
                           "kill -KILL -$pid && echo >killed\nwait\ntrue\n",
                           folder.file(""), call, wait_ms / 1000.0));
    REQUIRE(std::system(("bash '" + folder.file("kill.sh") + "' 2>/dev/null").c_str()) == 0);
    killed += fs::remove(folder.file("killed")) ? 1 : 0;
    std::vector<std::string> steps;  // reported as ended
    std::istringstream said{content_of(folder.file("out"))};
    for (std::string text; std::getline(said, text);)
      if (text.ends_with("ok") || text.find(" s  ") != std::string::npos)
        steps.push_back(text.substr(0, text.find(' ')));
    INFO(wait_ms << " ms: " << content_of(folder.file("out")));
    if (steps.size() < 2) continue;
    steps.pop_back();  // may not have been packed yet
    REQUIRE(gpu_day(folder, "unpack results unpacked").code == 0);
    for (const std::string& step : steps) CHECK(fs::exists(folder.file("unpacked/c/" + step + ".log")));
    for (const std::string& name : results_in(folder.file("results")))
      if (!name.starts_with(".")) CHECK(fs::file_size(folder.file("results/" + name)) < 16U << 20U);
    const std::string large = folder.file("unpacked/c/large");
    CHECK((!fs::exists(large) || fs::file_size(large) == 36'000'000));
  }
  CHECK(killed >= 4);  // a call takes more than three seconds
}

TEST_CASE("results that are too large lack the largest files, which are named") {
  const ScratchFolder folder;
  write_program(folder, "case $1 in calibrate) echo calibrated; head -c 3000000 /dev/urandom >$5.raw; exit 1;; esac\n");
  const ProgramResult result =
      gpu_day(folder, "c results --program ./program --python true --plans . --work work --most 1");
  CHECK(result.code == 1);
  CHECK(packed(folder, "calibrate.log") == "calibrated\n");
  CHECK(packed(folder, "left-out.txt").ends_with(".raw\n"));
  for (const std::string& name : results_in(folder.file("results")))
    CHECK(fs::file_size(folder.file("results/" + name)) <= 16U << 20U);
}

TEST_CASE("the script for a day with a GPU refuses wrong arguments") {
  const ScratchFolder folder;
  const std::string expected = "; expected the arguments that the head of the script lists\n";
  CHECK(gpu_day(folder, "e results").err == "gpu_day.sh: no call 'e'" + expected);
  CHECK(gpu_day(folder, "a --dry-run").err == "gpu_day.sh: no folder for results" + expected);
  const ProgramResult unknown = gpu_day(folder, "a results --programm x");
  CHECK(unknown.code == 2);
  CHECK(unknown.err == "gpu_day.sh: unknown option '--programm'" + expected);
  CHECK(gpu_day(folder, "a results --seconds soon").err ==
        "gpu_day.sh: --seconds 'soon' is no number of seconds" + expected);
  CHECK(gpu_day(folder, "a results --program /no/such/file").err ==
        "gpu_day.sh: no program at '/no/such/file'" + expected);
}

}  // namespace tidepool::gpu_day_test
