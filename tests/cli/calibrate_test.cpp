#include <algorithm>
#include <nlohmann/json.hpp>

#include "simulator/machine.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/program.hpp"
#include "validator/cuda/calibration.hpp"
#include "validator/host/calibration.hpp"

namespace tidepool::calibrate_test {

TEST_CASE("calibrate measures copies within this machine's memory") {
  const ScratchFolder folder;
  const std::string path = folder.file("host.json");
  const ProgramResult result =
      run_program({"calibrate", "--backend", "host", "--largest", "4MiB", "--samples", "3", "-o", path, "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["figures"].size() == 2 * 7 + 2);  // 1 B, 4 KiB ... 4 MiB each way, and both ways at once
  const Machine machine = find_machine(path);
  CHECK(machine.name == "this-host");
  CHECK_THAT(machine.source, ContainsSubstring("measured 2"));
  for (const Link& link : {machine.h2d, machine.d2h}) {
    REQUIRE(link.times.size() == 6);
    CHECK(link.times.back().size == 4_MiB);
    CHECK(link.duplex_ppm > 0);
    CHECK(link.time(4_MiB) < 1'000'000_us);
  }
}

TEST_CASE("calibrate leaves the host's submission out of the time of copies") {
  const ScratchFolder folder;
  const std::string path = folder.file("gpu.json");
  setenv("LD_LIBRARY_PATH", tests::fake_cuda_folder().c_str(), 1);
  setenv("TIDEPOOL_FAKE", "seed=3,submit=2500", 1);
  const ProgramResult result = run_program({"calibrate", "--largest", "4MiB", "--samples", "3", "-o", path});
  unsetenv("LD_LIBRARY_PATH");
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Machine machine = find_machine(path);
  CHECK(machine.d2h.latency == 10_us);
  CHECK(machine.h2d.latency == 10_us);
}

TEST_CASE("calibrate finds the numbers that a device has") {
  // The fake copies with a latency of 10 us and 12 bytes per ns in each direction, and without coupling. A kernel
  // clears 1000 bytes per ns.
  const ScratchFolder folder;
  const std::string path = folder.file("gpu.json");
  setenv("LD_LIBRARY_PATH", tests::fake_cuda_folder().c_str(), 1);
  setenv("TIDEPOOL_FAKE", "seed=3,tick=1000", 1);
  const ProgramResult result = run_program({"calibrate", "--largest", "4MiB", "--samples", "3", "-o", path});
  const Machine machine = find_machine(path);
  setenv("TIDEPOOL_FAKE", "maps=0", 1);
  const ProgramResult unable = run_program({"calibrate", "--largest", "4MiB", "--samples", "3", "-o", path});
  setenv("TIDEPOOL_FAKE", "devices=0", 1);
  const ProgramResult none = run_program({"calibrate", "-o", path});
  unsetenv("LD_LIBRARY_PATH");
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("d2h duplex                                     100.0 %"));
  CHECK_THAT(result.out, ContainsSubstring("step of the device's timer                        1 us"));
  CHECK(machine.name == "fake");
  CHECK(machine.capacity == 16_GiB);
  CHECK(machine.h2d.rate == BytesPerSecond{12'000'000'000});
  CHECK(machine.d2h.rate == BytesPerSecond{12'000'000'000});
  CHECK(machine.d2h.latency == 10_us);
  CHECK(std::abs((machine.h2d.time(1_MiB) - Nanos{10'000 + (1 << 20) / 12}).count()) <= 10);
  CHECK(machine.d2h.duplex_ppm >= 999'900);
  CHECK(machine.d2h.slowdown_ppm == 0);
  CHECK(machine.launch > 0_ns);
  CHECK(machine.segment_alloc > 0_ns);
  CHECK(machine.host.pin_rate > BytesPerSecond{});
  CHECK_THAT(machine.source, ContainsSubstring("on fake, driver for CUDA 13.0 by tidepool "));
  CHECK_THAT(machine.source, !ContainsSubstring("assumed"));
  CHECK_THAT(result.out,
             ContainsSubstring("mapping a page of 2 MiB") && ContainsSubstring("unmapping a page of 2 MiB"));
  CHECK(machine.page_map > 0_ns);
  CHECK(machine.page_unmap > 0_ns);
  REQUIRE(unable.code == 0);
  CHECK_THAT(unable.out, !ContainsSubstring("mapping a page"));
  const Machine without = find_machine(path);
  CHECK_THAT(without.source, ContainsSubstring("; page_map and page_unmap assumed to cost as segments do"));
  CHECK(without.page_map == without.segment_alloc);
  CHECK(without.page_unmap == without.segment_free);
  CHECK(none.code == 2);
  CHECK(none.err == "tidepool: --backend: cuda: there is no device 0; the driver knows 0\n");
}

TEST_CASE("a device that has no memory left to map is calibrated all the same") {
  // This device has 20 MiB. The copies need 12 MiB, and the measurement of cudaMalloc needs 4 MiB more. Mapping needs
  // 32 MiB more, for 16 pages.
  const tests::FakeDriver device{"memory=20971520"};
  const Bytes free = device.gpu().free_memory();
  const Calibration calibration = cuda::calibrate(device.gpu(), {.largest = 4_MiB, .samples = 1});
  const Machine& machine = calibration.machine;
  CHECK_THAT(machine.source, ContainsSubstring("; page_map and page_unmap assumed to cost as segments do"));
  CHECK(machine.page_map == machine.segment_alloc);
  CHECK(machine.page_unmap == machine.segment_free);
  CHECK(std::none_of(calibration.figures.begin(), calibration.figures.end(),
                     [](const Figure& figure) { return figure.name.find("mapping") != std::string::npos; }));
  CHECK(device.gpu().free_memory() == free);
}

TEST_CASE("the coupling of the two directions is the part of its rate that each keeps while both move") {
  // Each direction moves 1 byte in a ns. While both move, out keeps 60 % of its rate and in keeps 90 %. So 4 copies of
  // n bytes in end after 4n / 0.9. By then out has moved 0.6 / 0.9 of its bytes, and the rest takes 4n / 3 alone.
  const auto time = [](double bytes) { return Nanos{static_cast<std::int64_t>(bytes)}; };
  const LinkProbe probe{.copy = [&](bool, Bytes size) { return time(static_cast<double>(size.count())); },
                        .both =
                            [&](Bytes size, int count) {
                              const double alone = static_cast<double>(size.count()) * count;
                              return std::pair{time(alone / 0.9 + alone / 3), time(alone / 0.9)};
                            }};
  Calibration calibration;
  measure_links(probe, {.largest = 16_MiB, .samples = 1}, calibration);
  CHECK(std::abs(calibration.machine.d2h.duplex_ppm - 600'000) <= 1);
  CHECK(std::abs(calibration.machine.h2d.duplex_ppm - 900'000) <= 1);
  CHECK(calibration.machine.h2d.rate == BytesPerSecond{1'000'000'000});
}

TEST_CASE("calibrate refuses devices and sizes that it cannot measure") {
  const ScratchFolder folder;
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"calibrate", "-o", folder.file("x.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(refused({"--backend", "tpu"}) == "tidepool: --backend: 'tpu' is not a backend; expected host or cuda\n");
  CHECK(refused({"--largest", "1MiB"}) ==
        "tidepool: --largest: '1MiB' is no size to measure copies up to; expected 4MiB to 4GiB\n");
  CHECK(refused({"--samples", "0"}) == "tidepool: --samples: expected at least 1\n");
}

}  // namespace tidepool::calibrate_test
