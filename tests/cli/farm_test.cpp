// Sweeps whose runs other programs start: a fake of Slurm's commands, and GNU parallel on this machine.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "simulator/studies/launch/process.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "tests/skip.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::farm_test {

namespace fs = std::filesystem;

namespace {

/// Puts a folder in front of PATH, as long as the object exists.
class FirstInPath {
 public:
  explicit FirstInPath(const std::string& folder) : before_{std::getenv("PATH")} {
    setenv("PATH", (folder + ":" + before_).c_str(), 1);
  }
  ~FirstInPath() { setenv("PATH", before_.c_str(), 1); }
  FirstInPath(const FirstInPath&) = delete;
  FirstInPath& operator=(const FirstInPath&) = delete;

 private:
  std::string before_;
};

void write_program(const std::string& path, const std::string& script) {
  std::ofstream{path} << "#!/bin/bash\n" << script;
  fs::permissions(path, fs::perms::owner_all);
}

/// Writes programs with the names of Slurm's commands. sbatch runs the tasks before it returns; the first time, it
/// leaves out the tasks in the file "lost". It appends its arguments to the file "submitted", and prints the job id
/// "17", or "17;west" for the cluster west. squeue knows no job.
void write_slurm(const ScratchFolder& scratch) {
  fs::create_directories(scratch.file("bin"));
  write_program(scratch.file("bin/sbatch"), R"sh(cd "$(dirname "$0")"
echo "$@" >>submitted
for word; do case $word in --array=*) array=${word#--array=} ;; esac; done
for range in ${array//,/ }; do
  for ((i = ${range%-*}; i <= ${range#*-}; ++i)); do
    if [ -f lost ] && grep -qx $i lost; then continue; fi
    SLURM_ARRAY_TASK_ID=$i sh "${@: -1}"
  done
done
rm -f lost
echo "a site's greeting"
case "$*" in *"-M west "*) echo "17;west" ;; *) echo 17 ;; esac
)sh");
  write_program(scratch.file("bin/squeue"), "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n");
}

struct Sweep {
  explicit Sweep(const ScratchFolder& scratch) : trace{scratch.file("t.jsonl")}, whole{scratch.file("whole.sqlite")} {
    std::ofstream{trace} << to_jsonl(tests::random_trace(1, 60));
    REQUIRE(run_program(command(whole)).code == 0);
  }
  /// So many runs that no shard is empty: the version of the program decides the shard of each.
  std::vector<std::string> command(const std::string& database, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"sweep",     trace, "--policy", "none,lru-swap,random", "--capacity", "0.4x..1.0x/40",
                                 "--no-plot", "-o",  database};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string trace, whole;
};

}  // namespace

TEST_CASE("a sweep by Slurm submits lost tasks once more and ends with the same results") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  write_slurm(scratch);
  std::ofstream{scratch.file("bin/lost")} << "2\n4\n";
  const FirstInPath path{scratch.file("bin")};
  const std::string database = scratch.file("5%.sqlite");
  const ProgramResult result = run_program(
      sweep.command(database, {"--slurm", "--shards", "4", "--slurm-options", "--partition=short  --mem=1G"}));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.err ==
        "submitted job 17 with 4 tasks\n2 shards are not complete; once more\nsubmitted job 17 with 2 tasks\n"
        "all 120 runs are in " +
            database + "\n");
  CHECK(run_program({"diff", database, sweep.whole}).out == "identical: 120 runs\n");
  CHECK_FALSE(fs::exists(database + ".shards"));
  const std::string submitted = content_of(scratch.file("bin/submitted"));
  CHECK(submitted.find("--array=1-4 --partition=short --mem=1G " + database + ".shards/job.sh\n") != std::string::npos);
  CHECK(submitted.find("--array=2,4 ") != std::string::npos);
  CHECK(submitted.find("/5%%.sqlite.shards/%a.log ") != std::string::npos);

  const ProgramResult again = run_program(sweep.command(database, {"--slurm"}));
  CHECK(again.code == 0);
  CHECK(again.err == "all 120 runs are in " + database + "\n");
}

TEST_CASE("a sweep by Slurm whose tasks never end well says where to look and loses nothing") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  write_slurm(scratch);
  write_program(scratch.file("bin/rm"), "");  // keeps the file "lost", so that the same tasks are lost again
  std::ofstream{scratch.file("bin/lost")} << "2\n";
  const std::string database = scratch.file("r.sqlite");
  {
    const FirstInPath path{scratch.file("bin")};
    const ProgramResult result = run_program(sweep.command(database, {"--slurm", "--shards", "2"}));
    CHECK(result.code == 1);
    CHECK(result.err.find(" of 120 runs are in " + database +
                          "; 1 shard did not finish in two tries; its messages are in " + database + ".shards\n") !=
          std::string::npos);
  }
  CHECK(fs::exists(database + ".shards/1.sqlite"));
  CHECK(run_program(sweep.command(database)).code == 0);
  CHECK(run_program({"diff", database, sweep.whole}).out == "identical: 120 runs\n");
}

TEST_CASE("a sweep whose waiting program was killed waits for its job before it submits another") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  write_slurm(scratch);
  const std::string database = scratch.file("r.sqlite");
  fs::create_directories(database + ".shards");
  std::ofstream{database + ".shards/job.sh.id"} << "16\n";
  // Job 16 runs at the first query, and has ended at later ones.
  write_program(scratch.file("bin/squeue"), R"sh(cd "$(dirname "$0")"
case "$*" in *--jobs=16*) [ -f asked ] || { touch asked; echo RUNNING; } ;; esac
)sh");
  const FirstInPath path{scratch.file("bin")};
  const ProgramResult result = run_program(sweep.command(database, {"--slurm", "--shards", "1"}));
  CHECK(result.code == 0);
  CHECK(result.err ==
        "job 16 of an earlier sweep is still there; waiting for it\nsubmitted job 17 with 1 task\n"
        "all 120 runs are in " +
            database + "\n");
  CHECK(run_program({"diff", database, sweep.whole}).out == "identical: 120 runs\n");
}

TEST_CASE("a job that went to another cluster is followed and ended there") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  write_slurm(scratch);
  // This cluster knows no job 17. The cluster west says that job 17 runs, but only at the first query.
  write_program(scratch.file("bin/squeue"), R"sh(cd "$(dirname "$0")"
case "$*" in
  "-M west --noheader --array --jobs=17 "*) echo "CLUSTER: west"; [ -f asked ] || { touch asked; echo RUNNING; } ;;
  *) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
esac
)sh");
  const FirstInPath path{scratch.file("bin")};
  const std::string database = scratch.file("r.sqlite");
  const std::vector<std::string> command =
      sweep.command(database, {"--slurm", "--shards", "1", "--slurm-options", "-M west --mem=1G"});
  const ProgramResult result = run_program(command);
  CHECK(result.code == 0);
  CHECK(result.err == "submitted job 17 on west with 1 task\nall 120 runs are in " + database + "\n");
  CHECK(fs::exists(scratch.file("bin/asked")));
  CHECK(run_program({"diff", database, sweep.whole}).out == "identical: 120 runs\n");

  // An interrupt comes while the sweep waits for an earlier job.
  write_program(scratch.file("bin/squeue"), "echo RUNNING; mkdir \"$0.asked\" && kill -INT $PPID\n");
  write_program(scratch.file("bin/scancel"), "echo \"$@\" >\"$(dirname \"$0\")/ended\"\n");
  const std::string other = scratch.file("other.sqlite");
  fs::create_directories(other + ".shards");
  std::ofstream{other + ".shards/job.sh.id"} << "16;west\n";
  const ProgramResult stopped = run_program(sweep.command(other, {"--slurm", "--shards", "1"}));
  CHECK(stopped.code == 130);
  CHECK(stopped.err.starts_with(
      "job 16 on west of an earlier sweep is still there; waiting for it\ninterrupted: 0 of 120"));
  CHECK(content_of(scratch.file("bin/ended")) == "-M west 16\n");
}

TEST_CASE("a refusal by Slurm is reported, and so is a missing Slurm") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  const std::string database = scratch.file("r.sqlite");
  fs::create_directories(scratch.file("bin"));
  const FirstInPath path{scratch.file("bin")};
  write_program(scratch.file("bin/sbatch"), "echo 'sbatch: error: invalid partition specified: short' >&2; exit 1\n");
  const ProgramResult refused = run_program(sweep.command(database, {"--slurm"}));
  CHECK(refused.code == 1);
  CHECK(refused.err == "tidepool: sbatch: sbatch: error: invalid partition specified: short\n");
  for (const std::string left : {"", ".shards", "-wal", "-shm"}) CHECK_FALSE(fs::exists(database + left));
  CHECK_THROWS_WITH(run_process({"no-such-program"}), "no-such-program: cannot be run: No such file or directory");
  CHECK_THROWS_WITH(require_program("no-such-program"), "no-such-program: cannot be run: No such file or directory");
  require_program("sbatch");
}

TEST_CASE("a sweep by a batch system that is not there leaves nothing behind") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  const std::string database = scratch.file("new.sqlite"), hosts = scratch.file("hosts");
  write_file(hosts, "1/:\n");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", scratch.file("nothing").c_str(), 1);
  const ProgramResult slurm = run_program(sweep.command(database, {"--slurm"}));
  const ProgramResult farm = run_program(sweep.command(database, {"--hosts", hosts}));
  ::setenv("PATH", path.c_str(), 1);
  CHECK(slurm.code == 2);
  CHECK(slurm.err == "tidepool: sbatch: cannot be run: No such file or directory\n");
  CHECK(farm.code == 2);
  CHECK(farm.err == "tidepool: parallel: cannot be run: No such file or directory\n");
  CHECK_FALSE(fs::exists(database));
  CHECK_FALSE(fs::exists(database + ".shards"));
}

TEST_CASE("a program is ended when its caller asks for it") {
  const std::atomic<bool> stop = true;
  CHECK(run_process({"sleep", "60"}, false, &stop).code == 128 + SIGTERM);
  CHECK(run_process({"sleep", "60"}, true, &stop).code == 128 + SIGTERM);
}

TEST_CASE("the output of a program is known when it ends, even if its child processes go on") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("child");
  const auto begin = std::chrono::steady_clock::now();
  const ProcessResult result = run_process({"sh", "-c", "echo said; sleep 300 & echo $! >'" + path + "'; exit 3"});
  CHECK(result.code == 3);
  CHECK(result.said == "said\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{200});
  kill(std::stoi(content_of(path)), SIGTERM);
}

TEST_CASE("a sweep on hosts ends with the same results") {
  if (std::system("command -v parallel >/dev/null") != 0) {
    tests::skip("GNU parallel is not installed");
    return;
  }
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  const std::string database = scratch.file("it's 5% here.sqlite");
  const ProgramResult result = run_program(sweep.command(database, {"--hosts", ":", "--shards", "2", "-j", "1"}));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.err.ends_with("all 120 runs are in " + database + "\n"));
  CHECK(run_program({"diff", database, sweep.whole}).out == "identical: 120 runs\n");
}

TEST_CASE("options that contradict each other are refused before anything is submitted") {
  const ScratchFolder scratch;
  const Sweep sweep{scratch};
  const std::string database = scratch.file("r.sqlite"), hosts = scratch.file("hosts");
  std::ofstream{hosts} << "# none\n";
  const auto refused = [&](std::vector<std::string> more, const std::string& message) {
    const ProgramResult result = run_program(sweep.command(database, more));
    CHECK(result.code == 2);
    CHECK(result.err == "tidepool: " + message + "\n");
  };
  refused({"--slurm", "--hosts", "a,b"}, "--hosts: given with --slurm; expected one of them");
  refused({"--shards", "3"}, "--shards: expected --slurm or --hosts");
  refused({"--slurm-options", "--mem=1G"}, "--slurm-options: expected --slurm");
  refused({"--slurm", "--shard", "1/2"}, "--shard: expected no --slurm, which chooses shards");
  CHECK_FALSE(fs::exists(database));
  refused({"--hosts", hosts}, "--hosts: " + hosts + " names no host; expected one on each line");
  const ProgramResult nowhere = run_program({"sweep", sweep.trace, "--slurm"});
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err == "tidepool: --slurm: expected -o FILE, where the results are collected\n");
}

}  // namespace tidepool::farm_test
