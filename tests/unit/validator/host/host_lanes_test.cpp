// Lanes of the host backend.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/catch.hpp"
#include "validator/host/lanes.hpp"

namespace tidepool::host_lanes_test {

TEST_CASE("a lane waits as patiently while its process is stopped") {
  using namespace std::chrono_literals;
  int go[2] = {};
  REQUIRE(pipe(go) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Lanes lanes{2, Nanos{1'000'000'000}};
    lanes.submit(0, {}, [&] {
      char byte = 0;
      static_cast<void>(!read(go[0], &byte, 1));
    });
    lanes.submit(1, {{0, 1}}, [] {});
    _exit(lanes.finish() ? 1 : 0);
  }
  std::this_thread::sleep_for(100ms);
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(1'500ms);
  kill(child, SIGCONT);
  std::this_thread::sleep_for(100ms);  // enough for a lane to give up, if it counts the time in which it was stopped
  REQUIRE(write(go[1], "x", 1) == 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  close(go[0]), close(go[1]);
}

}  // namespace tidepool::host_lanes_test
