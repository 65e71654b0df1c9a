#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/base/input.hpp"

namespace tidepool::audit_test {

using Json = nlohmann::json;

namespace {

/// Writes a log of three blocks. By default they lie where CnMem places them in 256 MiB from 0x1000000 on: the third
/// one where the first one was.
std::string write_log(const ScratchFolder& folder, const std::string& third = "0x1000000") {
  const std::string path = folder.file("log.text");
  std::ofstream{path} << "Malloc 0x1000000 300\nMalloc 0x1000200 700\nFree 0x1000000\nMalloc " << third << " 512\n";
  return path;
}

}  // namespace

TEST_CASE("tidepool audit --json counts matches, in total and by device") {
  const ScratchFolder folder;
  const ProgramResult result = run_program({"audit", write_log(folder), "--pool", "cnmem", "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json json = Json::parse(result.out);
  CHECK(json.at("allocations") == 3);
  CHECK(json.at("matched") == 3);
  CHECK(json.at("first_mismatch").is_null());
  CHECK(json.at("segment_allocations") == 0);
  CHECK(json.at("segment_matched") == 0);
  CHECK(json.at("inferred_segments") == 1);
  CHECK(json.at("start_state") == "determined");
  CHECK(json.at("devices").size() == 1);
  CHECK(json.at("devices").at(0).at("matched") == 3);
}

TEST_CASE("tidepool audit ends with 1 when an address differs, and names it") {
  const ScratchFolder folder;
  const std::string path = write_log(folder, "0x1000600");
  const ProgramResult result = run_program({"audit", path});
  CHECK(result.code == 1);
  CHECK_THAT(result.out,
             ContainsSubstring("device 0: event 3: the log shows 512 B at 0x1000600; the model gives 0x1000000\n"));
}

TEST_CASE("tidepool audit says if a log was recorded under another allocator, and if it compared nothing") {
  const ScratchFolder folder;
  const std::string path = folder.file("log.text");
  std::string log;
  for (int i = 0; i < 300; ++i) log += fmt::format("Malloc {:#x} 300\n", 0x7'0000'0000 - 0x10'0000 * i);
  write_file(path, log);
  const ProgramResult other = run_program({"audit", path});
  CHECK(other.code == 1);
  CHECK(other.err == "tidepool: " + path +
                         ": 1 of 300 addresses match: it was recorded under another allocator, such as cudaMalloc\n");

  // A PyTorch snapshot without devices: pickle.dumps({"segments": [], "device_traces": []}, 2).
  using namespace std::string_view_literals;
  const std::string empty = folder.file("empty.pickle");
  write_file(empty, "\x80\x02}q\0(X\x08\0\0\0segmentsq\x01]q\x02X\x0d\0\0\0device_tracesq\x03]q\x04u."sv);
  for (const char* form : {"--json", "--pool=pytorch"}) {
    const ProgramResult nothing = run_program({"audit", empty, form});
    CHECK(nothing.code == 1);
    CHECK(nothing.err == "tidepool: " + empty + ": nothing was compared: no event has an address\n");
  }
}

TEST_CASE("tidepool audit takes CnMem's initial size and the logged segments") {
  const ScratchFolder folder;
  const std::string segments = folder.file("segments.txt");
  std::ofstream{segments} << "0x1000000 1\n";
  const ProgramResult result =
      run_program({"audit", write_log(folder), "--pool", "cnmem(init=1MiB)", "--segments", segments, "--json"});
  CHECK(result.code == 0);
  CHECK(Json::parse(result.out).at("segment_matched") == 1);
}

TEST_CASE("tidepool audit refuses files that it cannot compare") {
  const ScratchFolder folder;
  const std::string path = write_log(folder);
  const auto message = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(message({"audit", path, "--pool", "pytorch"}) ==
        "tidepool: " + path + ": no pickled PyTorch snapshot; expected one for --pool pytorch\n");
  CHECK(message({"audit", path, "--pool", "best-fit"}) ==
        "tidepool: --pool: 'best-fit' has no logs from devices; expected pytorch or cnmem\n");
  const std::string bad = folder.file("bad.csv");
  std::ofstream{bad} << "Thread,Time,Action,Pointer,Size,Stream\n1,2,3\n";
  CHECK(message({"audit", bad}) ==
        "tidepool: " + bad + ":2: '1,2,3'; expected Thread,Time,Action,Pointer,Size,Stream\n");
  const std::string segments = folder.file("segments.txt");
  std::ofstream{segments} << "\n0x1000000 none\n";
  CHECK(message({"audit", path, "--segments", segments}) ==
        "tidepool: " + segments +
            ":2: '0x1000000 none' is not a segment; expected an address and a size in MiB, as in 0x7062c0000 256\n");
}

}  // namespace tidepool::audit_test
