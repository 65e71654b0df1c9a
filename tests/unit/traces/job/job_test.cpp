// Jobs: import from the profiles of all ranks, job files, archives.
#include "traces/job/job.hpp"

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/rank_profiles.hpp"
#include "tests/refusal.hpp"
#include "traces/base/input.hpp"
#include "traces/import/tar.hpp"
#include "traces/job/job_import.hpp"

namespace tidepool::job_test {

using tests::rank_profile;
using tests::refusal;

namespace {

std::vector<RankProfile> profiles(const std::vector<std::string>& files) {
  std::vector<RankProfile> all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".json";
    all.push_back({name, parse_kineto(Input{name, files[i]})});
  }
  return all;
}

std::string complaint(const std::vector<std::string>& files) {
  return refusal([&] { join_ranks("runs", profiles(files)); });
}

/// A job file of two ranks and one collective, with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text =
      R"({"tidepool_job": 1, "clock_residual_ns": 0, "ranks": [{"trace": "a.tide", "trace_hash": "", "start_ns": 0},)"
      R"( {"trace": "b.tide", "trace_hash": "", "start_ns": 5}], "groups": [{"name": "all", "ranks": [0, 1]}],)"
      R"( "collectives": [{"name": "all_reduce", "group": "all", "input_bytes": 8, "cost_ns": 7, "ops": [3, 4]}]})";
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string job_complaint(const std::string& from, const std::string& to) {
  return refusal([&] { parse_job(Input{"job.json", changed(from, to)}); });
}

constexpr const char* kPlain = "0";  // the kind of a regular file

/// A header of a tar archive and what follows it, in whole blocks.
/// @param size  as in the header
std::string entry(const std::string& name, const std::string& text, const std::string& kind, const std::string& size) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& value) { header.replace(at, value.size(), value); };
  put(0, name);
  put(124, size);
  put(156, kind);
  put(257, "ustar");
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string(1, '\0') + " ");
  return header + text + std::string((512 - text.size() % 512) % 512, '\0');
}
std::string entry(const std::string& name, const std::string& text, const std::string& kind = kPlain) {
  return entry(name, text, kind, fmt::format("{:011o}", text.size()));
}

/// A tar archive of one file.
std::string archive(const std::string& name, const std::string& text) {
  return entry(name, text) + std::string(1024, '\0');
}

/// The names and contents of an archive's files.
std::vector<std::string> files_in_archive(const std::string& entries) {
  const Input input{"x.tar", entries + std::string(1024, '\0')};
  std::vector<std::string> found;
  for (const TarFile& file : tar_files(input)) found.push_back(file.name + ": " + std::string{file.bytes});
  return found;
}

}  // namespace

TEST_CASE("a rank's trace has the waits of its host, and the collectives in the profiles join the ranks' traces") {
  const LoadedJob loaded = join_ranks("runs", profiles({rank_profile(1, 940), rank_profile(0, 200)}));
  REQUIRE(loaded.traces.size() == 2);
  const Trace& trace = loaded.traces[0];
  // The ops are gemm, all-reduce, the host's wait, gemm.
  REQUIRE(trace.ops().size() == 4);
  const Op &collective = trace.op(OpId{1}), &wait = trace.op(OpId{2});
  CHECK(collective.kind == OpKind::kCollective);
  CHECK(collective.start == 190_us);  // counted from the first launch
  CHECK(wait.kind == OpKind::kHostWait);
  CHECK(trace.text(wait.name) == "cudaStreamSynchronize");
  CHECK(wait.stream == collective.stream);  // the stream of the thread's last launch
  CHECK(wait.launch == 120_us);
  CHECK(wait.start == 990_us);  // the end of the collective
  CHECK(wait.duration == 10_us);
  CHECK(trace.data().orders == std::vector{Order{OpId{0}, OpId{1}}});  // the event that stream 8 waited for
  REQUIRE(loaded.job.collectives.size() == 1);
  CHECK(loaded.job.collectives[0].name == "all_reduce");
  CHECK(loaded.job.collectives[0].input == 1024_B);
  CHECK(loaded.job.collectives[0].cost == 60_us);  // rank 1 arrived at 940 us and did not wait
  CHECK(loaded.job.collectives[0].ops == std::vector{OpId{1}, OpId{1}});
  CHECK(loaded.job.clock_residual == 0_us);
}

TEST_CASE("a profile that is read alone has no waits") {
  const Trace trace = to_trace(parse_kineto(Input{"t.json", rank_profile(0, 200)}));
  CHECK(trace.ops().size() == 3);
  CHECK(trace.data().orders.empty());
}

TEST_CASE("profiles are refused unless there is one of each rank, and their collectives agree") {
  CHECK(complaint({rank_profile(0, 200), rank_profile(2, 200)}) == "runs: ranks 0, 2; expected 0 to 1, each once");
  CHECK(complaint({rank_profile(1, 200)}) == "runs: rank 1; expected 0 to 0, each once");
  CHECK(complaint({rank_profile(0, 200), rank_profile(1, 200, "all_to_all")}) ==
        "b.json: collective 0 of group 'all' is all_to_all; expected all_reduce, as in a.json");
  CHECK(complaint({rank_profile(0, 200, "send 0->1"), rank_profile(1, 200)}) ==
        "a.json: 'send 0->1' goes from one rank to another; expected only what all ranks of a group take part in");
  std::string of_three = rank_profile(1, 200);
  of_three.replace(of_three.find("\"rank\": 1"), 9, "\"rank\": 1, \"world_size\": 3");
  CHECK(complaint({rank_profile(0, 200), of_three}) ==
        "runs: 2 of 3 ranks; expected all, the \"world_size\" of b.json");
  std::string none = rank_profile(1, 200);
  none.replace(none.find("ncclKernel"), 4, "gemm");
  CHECK(complaint({rank_profile(0, 200), none}) == "b.json: 0 collectives of group 'all'; expected 1, as in a.json");
}

TEST_CASE("a job file that is written is read back unchanged") {
  const Job job = parse_job(Input{"job.json", changed("all", "all")});
  CHECK(job.ranks[1].start == 5_ns);
  CHECK(job.collectives[0].ops == std::vector{OpId{3}, OpId{4}});
  CHECK(parse_job(Input{"job.json", job_file(job)}) == job);
  CHECK(is_job_file(Input{"job.json", job_file(job)}));
  CHECK_FALSE(is_job_file(Input{"t.json", rank_profile(0, 200)}));
}

TEST_CASE("a job file is refused with the record and the reason") {
  CHECK(refusal([] {
          parse_job(Input{"job.json", "{\"tidepool_job\": 1,"});
        }) == "job.json:byte 20: this is no JSON; expected a job file");
  CHECK(job_complaint("\"tidepool_job\": 1", "\"tidepool_job\": 2") == "job.json: tidepool_job: 2; expected 1");
  CHECK(job_complaint("\"start_ns\": 0", "\"start_ns\": 1e999") ==
        "job.json: a number beyond those of 64 bits; expected whole numbers");
  CHECK(job_complaint("\"start_ns\": 0", "\"start_ns\": " + std::string(100'000, '[')) ==
        "job.json: lists or objects 17 deep; expected a job file");
  CHECK(job_complaint("\"start_ns\": 0", "\"start_ns\": 0, \"start_ns\": 4") ==
        "job.json: an object has key 'start_ns' twice; expected each key once");
  CHECK(job_complaint("\"start_ns\": 0", "\"start_ns\": -1") ==
        "job.json: ranks[0].start_ns: -1; expected a whole number from 0 to 2^60");
  CHECK(job_complaint("\"trace\": \"b.tide\"", "\"trace\": 7") == "job.json: ranks[1].trace: 7; expected a text");
  CHECK(job_complaint("\"cost_ns\"", "\"cost_ms\"") ==
        "job.json: collectives[0]: unknown key 'cost_ms', did you mean 'cost_ns'?; known: name, group, input_bytes, "
        "cost_ns, ops");
  CHECK(job_complaint("[0, 1]", "[0, 2]") == "job.json: groups[0].ranks[1]: 2; expected 0 to 1");
  CHECK(job_complaint("[0, 1]", "[1, 0]") ==
        "job.json: groups[0].ranks: [1, 0]; expected each rank once, in ascending order");
  CHECK(job_complaint("\"group\": \"all\"", "\"group\": \"tp\"") ==
        "job.json: collectives[0].group: 'tp'; expected a name of the groups");
  CHECK(job_complaint("[3, 4]", "[3]") ==
        "job.json: collectives[0].ops: 1 ops; expected 2, one for each rank of group 'all'");
}

TEST_CASE("a tar archive gives its files, and a damaged one is refused with the position") {
  const std::string bytes = archive("runs/a.json", "hello");
  const Input input{"x.tar", bytes};
  CHECK(is_tar(input.bytes()));
  const std::vector<TarFile> files = tar_files(input);
  REQUIRE(files.size() == 1);
  CHECK(files[0].name == "runs/a.json");
  CHECK(files[0].bytes == "hello");
  CHECK(refusal([&] {
          tar_files(Input{"x.tar", bytes.substr(0, 1024)});
        }) == "x.tar:byte 1024: the archive ends early; expected a complete tar archive");
  std::string damaged = bytes;
  damaged[3] = 'x';
  CHECK(refusal([&] {
          tar_files(Input{"x.tar", damaged});
        }) == "x.tar:byte 0: a header with a wrong checksum; expected a complete tar archive");
  CHECK(refusal([&] {
          tar_files(Input{"x.tar", archive("a", std::string(2000, 'a')).substr(0, 700)});
        }) == "x.tar:byte 0: the archive ends early; expected a complete tar archive");
}

TEST_CASE("names of more than 100 bytes in a tar archive are whole, as GNU tar and pax write them") {
  const std::string name = std::string(95, 'a') + "/rank10.json", cut = name.substr(0, 100), nul(1, '\0');
  REQUIRE(cut.ends_with("/rank"));
  const std::vector<std::string> expected{name + ": ten", "b: next"};
  CHECK(files_in_archive(entry("././@LongLink", name + nul, "L") + entry("././@LongLink", "to", "K") +
                         entry(cut, "ten") + entry("b", "next")) == expected);
  const std::string path = fmt::format("117 path={}\n", name);  // 3 + 6 + 107 + 1 bytes
  REQUIRE(path.size() == 117);
  CHECK(files_in_archive(entry("g", "6 a=b\n", "g") + entry("x", "6 a=b\n" + path, "x") + entry(cut, "ten") +
                         entry("b", "next")) == expected);
  CHECK(refusal([&] { files_in_archive(entry("x", "900 path=a\n", "x") + entry("a", "")); }) ==
        "x.tar:byte 0: a damaged pax header; expected a complete tar archive");
}

TEST_CASE("sizes in a tar archive may be in base 256, or in a pax header") {
  const std::string text = "hello", size = "\x80" + std::string(10, '\0') + "\x05";
  CHECK(files_in_archive(entry("a", text, kPlain, size)) == std::vector<std::string>{"a: hello"});
  CHECK(files_in_archive(entry("x", "9 size=5\n", "x") + entry("a", text, kPlain, "00000000000")) ==
        std::vector<std::string>{"a: hello"});
  CHECK(refusal([&] { files_in_archive(entry("a", text, kPlain, "\x80" + std::string(11, '\xff'))); }) ==
        "x.tar:byte 0: the archive ends early; expected a complete tar archive");
}

TEST_CASE("ranks in a tar archive without their numbers have those of the files' names, not of the archive's name") {
  std::string first = rank_profile(0, 200), second = rank_profile(1, 940);
  for (std::string* profile : {&first, &second}) {
    const std::size_t at = profile->find("\"distributedInfo\"");
    profile->replace(at, profile->find("}", at) + 2 - at, "");
  }
  const ScratchFolder scratch;
  const std::string path = scratch.file("runs8.tar");
  write_file(path, entry("rank1.json", second) + entry("rank0.json", first) + std::string(1024, '\0'));
  std::vector<RankProfile> found = read_rank_profiles(path);
  REQUIRE(found.size() == 2);
  CHECK(found[1].file == path + ":rank1.json");
  CHECK(join_ranks(path, found).job.ranks.size() == 2);
  const std::string traces = scratch.file("traces8.tar");
  write_file(traces, entry("et4.json", R"({"schema": "1.0.1", "nodes": []})") + std::string(1024, '\0'));
  CHECK(refusal([&] { add_operands(path, found, traces); }) ==
        traces + ":et4.json: an execution trace of rank 4; expected one of each rank, 0 to 1");
}

}  // namespace tidepool::job_test
