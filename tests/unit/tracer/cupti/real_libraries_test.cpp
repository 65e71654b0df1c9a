// Tests of NVIDIA's own libraries if they are installed. None of these tests needs a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"
#include "tests/paths.hpp"

namespace tidepool::real_libraries_test {

namespace fs = std::filesystem;

#ifdef TIDEPOOL_WITH_RECORDER

namespace {

/// The folder that .ci/install_nvidia fills; it may not exist.
std::string installed() {
  const char* const folder = std::getenv("TIDEPOOL_NVIDIA");
  return folder != nullptr ? folder : fs::path{paths::program()}.replace_filename("nvidia").string();
}

/// Every libcupti in the folder installed(), and the toolkit's.
std::vector<std::string> cuptis() {
  std::vector<std::string> found;
  if (fs::is_directory(installed()))
    for (const auto& entry : fs::directory_iterator{installed()})
      if (entry.path().filename().string().starts_with("libcupti-")) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"})
    if (const std::string path = std::string{folder} + "/libcupti.so"; fs::exists(path)) found.push_back(path);
  return found;
}

std::string real_driver() {
  const std::string path = installed() + "/libcuda.so.1";
  return fs::exists(path) ? path : "";
}

struct Said {
  int code;
  std::string text;
};

Said ask(const std::string& program, const std::string& arguments, const std::string& variables = "") {
  const ScratchFolder folder;
  const std::string line = fmt::format("{} '{}' {} >'{}' 2>&1", variables, program, arguments, folder.file("said"));
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder.file("said"))};
}

Said ask_cupti(const std::string& what, const std::string& library, const std::string& more = "") {
  return ask(paths::real_cupti_job(), fmt::format("{} '{}' '{}' {}", what, library, real_driver(), more));
}

const std::string kInstall = "; .ci/install_nvidia build/nvidia fetches it, and TIDEPOOL_NVIDIA names another folder";

/// Runs the check with each libcupti that works here. Skips if there is none.
void with_each_cupti(const std::function<void(const std::string& library, const std::string& version)>& check) {
  std::string reasons;
  bool any = false;
  for (const std::string& library : cuptis()) {
    INFO(library);
    const Said version = ask_cupti("version", library);
    if (version.code == 77) {
      reasons += library + ": " + version.text;
      continue;
    }
    REQUIRE(version.code == 0);
    any = true;
    check(library, version.text.substr(0, version.text.find('\n')));
  }
  if (!any) tests::skip((reasons.empty() ? "no libcupti is installed" : reasons) + kInstall);
}

}  // namespace

TEST_CASE("a real libcupti has the calls and records that the recorder assumes") {
  with_each_cupti([](const std::string& library, const std::string&) {
    const Said said = ask_cupti("check", library);
    CHECK(said.text.empty());
    CHECK(said.code == 0);
  });
}

TEST_CASE("a real libcupti finds the records in the fake's buffers at their places") {
  with_each_cupti([](const std::string& library, const std::string& version) {
    const ScratchFolder folder;
    tests::run_job(folder,
                   tests::kKernels +
                       "alloc a 4096\nalloc b 4096\nstream s\nevent e\nrepeat 5\nlaunch add a b 1\ncopy a b 64\n"
                       "set b 16\nrecord e s\nwait e s\nagain\n",
                   "FAKE_CUPTI_VERSION=" + version + " FAKE_BUFFERS=" + folder.file("buffers"));
    const Said said = ask_cupti("walk", library, folder.file("buffers"));
    INFO(said.text);
    CHECK(said.code == 0);
    // The buffers have a device, two allocations, five records of each of the five kinds, and at least one flush.
    CHECK(std::atoi(said.text.c_str()) >= 1 + 2 + 5 * 5 + 1);
  });
}

TEST_CASE("a real libcuda has the functions that are called, and loads the recorder even if there is no GPU") {
  if (real_driver().empty()) return tests::skip("no libcuda.so.1 in " + installed() + kInstall);
  const ScratchFolder folder;
  const Said said = ask(paths::real_cuda_job(), "'" + real_driver() + "'",
                        "CUDA_INJECTION64_PATH='" + paths::recorder_library() +
                            "' TIDEPOOL_CUPTI=/nonexistent/libcupti.so "
                            "TIDEPOOL_RAW='" +
                            folder.file("raw") + "'");
  INFO(said.text);
  CHECK(said.code == 0);
  CHECK_THAT(said.text, ContainsSubstring("version 1"));
  CHECK_THAT(said.text, ContainsSubstring("\ncuInit "));
  CHECK_THAT(said.text, ContainsSubstring("tidepool: no CUPTI: /nonexistent/libcupti.so: cannot open shared object"));
}

#endif

}  // namespace tidepool::real_libraries_test
