// Ranks that do the same work share a trace.
#include "traces/job/like_ranks.hpp"

#include "tests/catch.hpp"
#include "tests/job_case.hpp"
#include "tests/program.hpp"
#include "traces/base/input.hpp"
#include "traces/file/writer.hpp"
#include "traces/job/job_output.hpp"

namespace tidepool::like_ranks_test {

namespace {

/// A trace with a buffer, an op that writes it, and a collective.
Trace rank(Bytes size, Nanos duration, Nanos launch, std::int64_t address, const std::string& name = "gemm") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = size, .address = address});
  build.run({.name = build.text(name), .launch = launch, .duration = duration}, {{a, Access::kWrite}});
  build.run({.kind = OpKind::kCollective}, {});
  build.free(a);
  return build.finish();
}

LoadedJob job_with(const Trace& last) {
  return tests::job_of({rank(8_B, 10_us, 1_us, 512), rank(8_B, 10_us, 3_us, 1024), last}, {2_us}, {0_us, 0_us, 0_us});
}

}  // namespace

TEST_CASE("ranks that differ only in addresses and host times share the trace of the first rank") {
  LoadedJob job = job_with(rank(8_B, 10_us, 2_us, 0));
  CHECK(share_traces(job) == std::vector<std::size_t>{0, 0, 0});
  CHECK(job.traces[2].hash() == job.traces[0].hash());
}

TEST_CASE("ranks that differ in a size, a kernel's time or a name have their own traces") {
  for (const Trace& other : {rank(9_B, 10_us, 2_us, 0), rank(8_B, 11_us, 2_us, 0), rank(8_B, 10_us, 2_us, 0, "gemv")}) {
    LoadedJob job = job_with(other);
    CHECK(share_traces(job) == std::vector<std::size_t>{0, 0, 2});
    CHECK(job.traces[2].hash() == other.hash());
  }
}

TEST_CASE("ranks that have lost records, or whose iterations begin at other steps, have their own traces") {
  TraceData lossy = rank(8_B, 10_us, 2_us, 0).data(), marked = lossy, other_clock = lossy;
  lossy.losses.dropped_records = 1;
  marked.marks.push_back({.event = 1, .kind = MarkKind::kIteration, .name = StringId{0}});
  for (const TraceData& data : {lossy, marked}) {
    LoadedJob job = job_with(Trace{data});
    CHECK(share_traces(job) == std::vector<std::size_t>{0, 0, 2});
  }
  other_clock.losses.clock_residual_ns = 5;
  LoadedJob job = job_with(Trace{other_clock});
  CHECK(share_traces(job) == std::vector<std::size_t>{0, 0, 0});
}

TEST_CASE("ranks of other groups have their own traces") {
  LoadedJob job = job_with(rank(8_B, 10_us, 2_us, 0));
  job.job.groups.push_back({"pair", {0, 1}});
  job.job.collectives[0].group = 1;
  job.job.collectives[0].ops.resize(2);
  CHECK(share_traces(job) == std::vector<std::size_t>{0, 0, 2});
}

TEST_CASE("a shared trace is one file, and the job is read back unchanged") {
  const ScratchFolder folder;
  LoadedJob job = job_with(rank(9_B, 10_us, 2_us, 0));
  share_traces(job);
  write_job(folder.file("job.json"), job);
  CHECK(std::filesystem::exists(folder.file("job.rank0.tide")));
  CHECK_FALSE(std::filesystem::exists(folder.file("job.rank1.tide")));
  CHECK(std::filesystem::exists(folder.file("job.rank2.tide")));
  const LoadedJob read = load_job(folder.file("job.json"));
  CHECK(read.job == job.job);
  CHECK(read.job.ranks[1].trace == "job.rank0.tide");
  CHECK(read.traces[1].data() == job.traces[0].data());
}

TEST_CASE("writing a job over another one removes the traces of that job") {
  const ScratchFolder folder;
  const Trace last = rank(9_B, 10_us, 2_us, 0);
  LoadedJob each = job_with(last), shared = job_with(last);
  each.traces[1] = rank(8_B, 12_us, 3_us, 1024);
  write_job(folder.file("job.json"), each);
  write_job(folder.file("other.json"), each);
  REQUIRE(std::filesystem::exists(folder.file("job.rank1.tide")));
  share_traces(shared);
  write_job(folder.file("job.json"), shared);
  CHECK_FALSE(std::filesystem::exists(folder.file("job.rank1.tide")));
  CHECK(std::filesystem::exists(folder.file("job.rank2.tide")));
  CHECK(std::filesystem::exists(folder.file("other.rank1.tide")));
  CHECK(load_job(folder.file("job.json")).traces[1].data() == shared.traces[0].data());

  // A job file that names other files, or a file that is no job, does not make the files beside it part of a job.
  each.job.ranks[1].trace = "mine.tide";
  write_file(folder.file("job.json"), job_file(each.job));
  write_file(folder.file("mine.tide"), to_trace_file(last));
  write_job(folder.file("job.json"), shared);
  CHECK(std::filesystem::exists(folder.file("mine.tide")));
  write_file(folder.file("job.json"), "{}");
  write_file(folder.file("job.rank1.tide"), to_trace_file(last));
  write_job(folder.file("job.json"), shared);
  CHECK(std::filesystem::exists(folder.file("job.rank1.tide")));
}

}  // namespace tidepool::like_ranks_test
