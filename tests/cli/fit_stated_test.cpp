// `tidepool fit` of jobs whose own allocator states how much memory they take.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"

namespace tidepool::fit_stated_test {

using Json = nlohmann::json;

namespace {

const std::string kScript = paths::source_folder() + "/tests/dry/stated.py";
constexpr std::int64_t kMiB = 1 << 20;

/// PyTorch's settings for the programs that a test runs.
class Settings {
 public:
  explicit Settings(const char* value) { setenv("PYTORCH_ALLOC_CONF", value, 1); }
  ~Settings() { unsetenv("PYTORCH_ALLOC_CONF"); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
};

struct DryJob {
  ScratchFolder folder;
  std::string trace = folder.file("run.tide");
  std::int64_t reserved = 0;  ///< as PyTorch printed it

  DryJob(const std::string& python, const std::string& kind, const std::vector<std::string>& options) {
    std::vector<std::string> record{"record", "--dry", "--device", "rtx-3090", "-o", trace};
    record.insert(record.end(), options.begin(), options.end());
    record.insert(record.end(), {"--", python, kScript, kind});
    const ProgramResult run = run_program(record);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    reserved = std::stoll(run.out);
  }
  Json fit(std::int64_t capacity) const {
    const ProgramResult run =
        run_program({"fit", trace, "--device", "rtx-3090", "--capacity", std::to_string(capacity) + "B", "--json"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    return Json::parse(run.out);
  }
};

}  // namespace

TEST_CASE("tidepool fit prints what PyTorch's allocator reserved in a dry run, whatever a replay gives") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  struct Case {
    std::string kind, settings;
    std::vector<std::string> options;
  };
  for (const Case& each : {Case{"graphs", "", {}}, Case{"side", "", {}}, Case{"leak", "", {"--torch"}},
                           Case{"empty", "", {}}, Case{"splits", "max_split_size_mb:128,expandable_segments:True", {}},
                           Case{"splits", "backend:cudaMallocAsync", {}}}) {
    INFO(each.kind << " " << each.settings);
    const Settings settings{each.settings.c_str()};
    const DryJob job{python, each.kind, each.options};
    const Json ample = job.fit(std::int64_t{20'000} * kMiB);
    CHECK(ample.at("fits") == true);
    CHECK(ample.at("settings") == each.settings);
    if (each.settings != "backend:cudaMallocAsync") CHECK(ample.at("reserved_bytes") == job.reserved);
    CHECK(ample.at("reserved_bytes").get<std::int64_t>() >= job.reserved);
    const std::int64_t context = ample.at("context_bytes").get<std::int64_t>();
    CHECK(job.fit(job.reserved + context).at("fits") == (each.settings != "backend:cudaMallocAsync"));
    // With less than the tensors take, it dies.
    const std::int64_t tensors = ample.value("allocated_peak_bytes", ample.at("live_bytes").get<std::int64_t>());
    CHECK(job.fit(tensors - 4 * kMiB + context).at("fits") == false);
  }
}

TEST_CASE("a job that sets its share of the device's memory does not fit a device whose share is too small") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const DryJob job{python, "share", {}};  // 384 MiB, of half of the memory: 768 MiB in all
  const Json less = job.fit(760 * kMiB);
  CHECK(less.at("fits") == false);
  CHECK(less.at("margin_bytes") == -4 * kMiB);
  CHECK(less.at("settings") == "garbage_collection_threshold:0.99");
  CHECK(job.fit(776 * kMiB).at("fits") == true);
  const ScratchFolder folder;
  for (const bool runs : {false, true}) {
    const ProgramResult dry =
        run_program({"record", "--dry", "--device", "rtx-3090", "--capacity", runs ? "776MiB" : "760MiB", "-o",
                     folder.file("run.tide"), "--", python, kScript, "share"});
    INFO(dry.err);
    CHECK((dry.code == 0) == runs);
  }
}

TEST_CASE("a job that asks how much memory there is hears of the given capacity, or of the device if it has no end") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  constexpr std::int64_t kGiB = 1024 * kMiB;
  const DryJob preset{python, "told", {}};
  CHECK(DryJob(python, "told", {"--capacity", "4096GiB"}).reserved == preset.reserved);
  CHECK(DryJob(python, "told", {"--capacity", "40GiB"}).reserved == 20 * kGiB);
  const DryJob small{python, "told", {"--capacity", "10GiB"}};
  CHECK(small.reserved == 5 * kGiB);
  CHECK(small.fit(10 * kGiB).at("certain") == true);
  CHECK(small.fit(3 * kGiB).at("certain") == false);  // there it would take less
  const ProgramResult fit =
      run_program({"fit", "--device", "rtx-3090", "--capacity", "40GiB", "--json", "--", python, kScript, "told"});
  INFO(fit.err);
  CHECK(Json::parse(fit.out).at("reserved_bytes") == 20 * kGiB);
}

TEST_CASE("tidepool fit runs a command again with the memory that there is, if its first recording leaves it open") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  // The first run reserves more than is left beside the context. A replay says that cached segments can be given back.
  const DryJob job{python, "graphs", {}};
  const std::int64_t context = 300 * kMiB;
  const auto capacity = std::to_string(context + job.reserved - 8 * kMiB) + "B";
  const ProgramResult fit =
      run_program({"fit", "--device", "rtx-3090", "--capacity", capacity, "--json", "--", python, kScript, "graphs"});
  const ScratchFolder folder;
  const ProgramResult dry = run_program({"record", "--dry", "--device", "rtx-3090", "--capacity", capacity, "-o",
                                         folder.file("run.tide"), "--", python, kScript, "graphs"});
  INFO(fit.err << dry.err);
  const Json verdict = Json::parse(fit.out);
  CHECK(verdict.at("fits") == (dry.code == 0));
  CHECK(verdict.at("reserved_from").get<std::string>().find("a second run of the job") != std::string::npos);
}

TEST_CASE("tidepool fit judges a job without training that ran to its end") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ProgramResult result = run_program({"fit", "--device", "rtx-3090", "--json", "--", python, kScript, "infer"});
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(Json::parse(result.out).at("fits") == true);
}

TEST_CASE("tidepool fit says how much of the host's memory a dry run pinned") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const DryJob job{python, "pinned", {}};
  CHECK(job.fit(std::int64_t{20480} * kMiB).at("pinned_peak_bytes") == 64 * kMiB);
  CHECK_THAT(run_program({"fit", job.trace}).out, ContainsSubstring("\nhost        64 MiB pinned at most\n"));
}

}  // namespace tidepool::fit_stated_test
