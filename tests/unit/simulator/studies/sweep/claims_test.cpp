// Sweeps that share the runs of one database.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "simulator/studies/sweep/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::claims_test {

namespace {

const std::vector<std::string> kKeys{"a", "b", "c"};
using Claims = std::vector<Claim>;

std::vector<SweepPart> some_parts() {
  std::vector<SweepPart> parts;
  NamedTrace trace{"random", tests::random_trace(3, 200)};
  Grid grid{{.pool = "best-fit", .policy = "none,lru,lru-swap,random", .capacity = "0.3x..1.0x/10", .seed = "1..2"},
            trace.trace};
  parts.push_back({std::move(trace), std::move(grid)});
  return parts;
}

}  // namespace

TEST_CASE("a sweep leaves a run to the living sweep that has claimed it") {
  const ScratchFolder scratch;
  Database one{scratch.file("r.sqlite")}, two{scratch.file("r.sqlite")};
  const ClaimLock first{one.path()};
  CHECK(one.claim(kKeys, 1, first) == Claims{Claim::kTaken});
  {
    const ClaimLock second{two.path()};
    CHECK(two.claim(kKeys, 2, second) == Claims{Claim::kElsewhere, Claim::kTaken, Claim::kTaken});
  }
  // The second sweep has ended without releasing its claims. They no longer count; those of the first still do.
  const ClaimLock third{two.path()};
  CHECK(two.claim(kKeys, 3, third) == Claims{Claim::kElsewhere, Claim::kTaken, Claim::kTaken});
  one.release(first);
  CHECK(two.claim(kKeys, 1, third) == Claims{Claim::kTaken});
}

TEST_CASE("a claim of a killed process does not count") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  int ready[2] = {};
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Database database{path};
    const ClaimLock lock{path};
    database.claim(kKeys, 3, lock);
    static_cast<void>(write(ready[1], "x", 1));
    for (;;) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  Database database{path};
  {
    const ClaimLock lock{path};
    CHECK(database.claim(kKeys, 3, lock) == Claims(3, Claim::kElsewhere));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(database.claim(kKeys, 3, lock) == Claims(3, Claim::kTaken));
  }
  CHECK_FALSE(std::filesystem::exists(path + "-workers"));  // the last holder has removed it
  close(ready[0]), close(ready[1]);
}

TEST_CASE("two sweeps into one database run each run once, and both end with all runs") {
  const ScratchFolder scratch;
  const std::vector<SweepPart> parts = some_parts();
  constexpr std::size_t runs = 4 * 10 * 2;
  const auto work = [&] {
    Database database{scratch.file("r.sqlite")};
    const SweepProgress end = sweep(parts, database, {.threads = 2});
    return std::pair{end, database.runs()};
  };
  auto other = std::async(std::launch::async, work);
  const std::pair here = work(), there = other.get();
  for (const std::pair<SweepProgress, std::int64_t>& end : {here, there}) CHECK(end.second == std::int64_t{runs});
  const SweepProgress ends[] = {here.first, there.first};
  CHECK(ends[0].done + ends[1].done == runs);
  for (const SweepProgress& end : ends) CHECK(end.present + end.done == runs);
  CHECK_FALSE(std::filesystem::exists(scratch.file("r.sqlite-workers")));  // the last sweep has removed it
}

TEST_CASE("sweeps that begin a new database at the same time wait for each other") {
  for (int round = 0; round < 50; ++round) {
    const ScratchFolder scratch;
    std::barrier ready{4};
    std::atomic<int> opened = 0;
    std::vector<std::thread> sweeps;
    for (int i = 0; i < 4; ++i)
      sweeps.emplace_back([&] {
        ready.arrive_and_wait();
        try {
          opened += Database{scratch.file("r.sqlite")}.runs() == 0;
        } catch (const std::runtime_error& error) {
          std::fprintf(stderr, "%s\n", error.what());
        }
      });
    for (std::thread& one : sweeps) one.join();
    REQUIRE(opened == 4);
  }
}

TEST_CASE("a sweep with nothing to do removes the lock file of a sweep that was killed before its end") {
  const ScratchFolder scratch;
  Database database{scratch.file("r.sqlite")};
  sweep(some_parts(), database, {});
  const std::string locks = scratch.file("r.sqlite-workers");
  std::ofstream{locks};
  CHECK(sweep(some_parts(), database, {}).done == 0);
  CHECK_FALSE(std::filesystem::exists(locks));
}

TEST_CASE("a sweep names a lock file that it cannot lock, with the reason") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("r.sqlite");
  const Database database{path};
  std::filesystem::create_directory(path + "-workers");
  CHECK_THROWS_WITH(ClaimLock{path},
                    std::filesystem::canonical(path).string() + "-workers: cannot be locked: Is a directory");
}

}  // namespace tidepool::claims_test
