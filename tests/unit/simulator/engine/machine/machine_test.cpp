#include "simulator/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "simulator/engine/machine/machine_file.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"

namespace tidepool::machine_test {

namespace {

const std::string kFile = R"({
  "name": "box",
  "capacity": "24GiB",
  "h2d": {"rate": "12.5GB/s", "latency": "10us"},
  "d2h": {"rate": "15GiB/s", "latency": "1500ns"},
  "device_copy": "450GB/s",
  "segment_alloc": "50us",
  "segment_free": "0ns",
  "page_map": "3us",
  "page_unmap": "70ns",
  "source": "assumed"
}
)";

/// kFile with `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kFile;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    parse_machine(text, "box.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a machine file gives each number with its unit") {
  const Machine box = parse_machine(kFile, "box.json");
  CHECK(box.name == "box");
  CHECK(box.capacity == 24_GiB);
  CHECK(box.h2d.rate == BytesPerSecond{12'500'000'000});
  CHECK(box.h2d.latency == 10_us);
  CHECK(box.d2h.rate == BytesPerSecond{15LL << 30});
  CHECK(box.d2h.latency == 1'500_ns);
  CHECK(box.device_copy == BytesPerSecond{450'000'000'000});
  CHECK(box.segment_alloc == 50_us);
  CHECK(box.segment_free == 0_ns);
  CHECK(box.page_map == 3_us);
  CHECK(box.page_unmap == 70_ns);
}

TEST_CASE("AutoSwap's link takes 47.2 us + 0.0756 ns/B out and 9.7 us + 0.0823 ns/B in") {
  const Machine titan = find_machine("titan-x-pcie3");
  CHECK(titan.d2h.time(1'000'000_B) == Nanos{47'200 + 75'600});
  CHECK(titan.h2d.time(1'000'000_B) == Nanos{9'700 + 82'300});
  CHECK(titan.d2h.time(0_B) == 47'200_ns);
}

TEST_CASE("G10's machine has 40 GiB and moves 15.754 GiB in 1 s and 10 us") {
  const Machine g10 = find_machine("g10-a100");
  CHECK(g10.capacity == 40_GiB);
  CHECK(g10.h2d.time(16'915'728'695_B) == 1'000'010_us);
  CHECK(g10.d2h.time(16'915'728'695_B) == 1'000'010_us);
}

TEST_CASE("the known machines are those of the command line, each with a source") {
  std::vector<std::string> names;
  for (const Machine& machine : known_machines()) {
    names.push_back(machine.name);
    INFO(machine.name);
    CHECK(
        (machine.source.find("assumed") != std::string::npos || machine.source.find("measured") != std::string::npos));
  }
  CHECK(names == std::vector<std::string>{"a100-pcie4", "g10-a100", "gh200-c2c", "h100-pcie5", "h200-pcie5",
                                          "mi250-pcie4", "mi300x-pcie5", "p100-pcie3", "titan-x-pcie3", "v100-nvlink2",
                                          "v100-pcie3"});
}

TEST_CASE("a machine that is written to a file is read back unchanged") {
  for (const Machine& machine : known_machines()) {
    INFO(machine_file(machine));
    CHECK(parse_machine(machine_file(machine), "copy.json") == machine);
  }
}

TEST_CASE("a machine may be given as a file") {
  const std::string path = (std::filesystem::temp_directory_path() / "tidepool-machine-test.json").string();
  std::ofstream{path} << kFile;
  CHECK(find_machine(path).name == "box");
  std::ofstream{path} << std::string(2 << 20, ' ');
  CHECK_THROWS_WITH(find_machine(path), path + ": larger than 1 MiB; expected a machine file");
  std::filesystem::remove(path);
}

TEST_CASE("an unknown machine is refused with the nearest name") {
  CHECK_THROWS_WITH(find_machine("h100pcie5"),
                    "no machine named 'h100pcie5', did you mean 'h100-pcie5'?; known: a100-pcie4, g10-a100, gh200-c2c, "
                    "h100-pcie5, h200-pcie5, mi250-pcie4, mi300x-pcie5, p100-pcie3, titan-x-pcie3, v100-nvlink2, "
                    "v100-pcie3, or a JSON file");
}

TEST_CASE("a machine file with a mistake is refused with its key") {
  CHECK(
      refusal(with("\"12.5GB/s\"", "\"12.5\"")) ==
      "box.json: h2d.rate: '12.5' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s, as in "
      "12.5GB/s");
  CHECK(refusal(with("24GiB", "-1GiB")) ==
        "box.json: capacity: '-1GiB' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, "
        "G or T, as in 512MiB");
  CHECK(refusal(with("\"1500ns\"", "1500")) ==
        "box.json: d2h.latency: 1500; expected a text with its unit, as in \"10us\"");
  CHECK(refusal(with("\"assumed\"", "\"\"")) ==
        "box.json: source: empty; expected a text with its unit, as in \"10us\"");
  CHECK(refusal(with("\"latency\": \"10us\"", "\"latancy\": \"10us\"")) ==
        "box.json: unknown key 'h2d.latancy', did you mean 'latency'?; known: rate, latency, times, duplex, slowdown");
  CHECK(
      refusal(with("\"capacity\": \"24GiB\",", "")) ==
      "box.json: key 'capacity' is missing; expected every key that simulator/engine/machine/MACHINES.md does not call "
      "optional");
  CHECK(refusal(with("{\"rate\": \"12.5GB/s\", \"latency\": \"10us\"}", "[]")) ==
        "box.json: h2d: not an object; expected an object with rate, latency, times, duplex, slowdown");
  CHECK(refusal("7") ==
        "box.json: not an object; expected an object with name, capacity, h2d, d2h, device_copy, segment_alloc, "
        "segment_free, page_map, page_unmap, host, storage, sharing, launch, submit, chunk, source");
  CHECK(refusal(with("\"source\"", R"("sharing": {"link": "0"}, "source")")) ==
        "box.json: sharing.link: '0' is no number of devices; expected a whole number from 1 to 1024");
  CHECK(refusal(with("\"source\"", R"("sharing": {"link": 2}, "source")")) ==
        "box.json: sharing.link: 2; expected a whole number as text, as in \"2\"");
  CHECK(refusal(with("\"source\"", R"("sharing": {"links": "2"}, "source")")) ==
        "box.json: unknown key 'sharing.links', did you mean 'link'?; known: link, host");
  CHECK(refusal(with("\"24GiB\",", "\"24GiB\"")) ==
        "box.json:4: this is not JSON; expected a machine file, as simulator/engine/machine/MACHINES.md describes");
  CHECK(refusal("") ==
        "box.json: is empty; expected a machine file, as simulator/engine/machine/MACHINES.md describes");
}

TEST_CASE("AutoSwap's machine and G10's copy as their papers assume, without mutual slow-downs") {
  for (const std::string name : {"titan-x-pcie3", "g10-a100"}) {
    const Machine machine = find_machine(name);
    for (const Link& link : {machine.h2d, machine.d2h}) CHECK(link == Link{link.rate, link.latency});
    CHECK(machine.host == HostMemory{});
    CHECK(machine.submit == 0_ns);
    CHECK(machine.launch == 0_ns);
    CHECK(machine.chunk == 0_B);
  }
}

TEST_CASE("optional keys of a machine file are read and written") {
  const std::string text = with("\"source\"", R"("launch": "4us",
  "submit": "6us",
  "chunk": "8MiB",
  "sharing": {"link": "2", "host": "8"},
  "host": {"capacity": "128GiB", "rounding": "power of two", "pin": {"rate": "8.4GB/s", "latency": "2300us"}},
  "source")");
  Machine box = parse_machine(text, "box.json");
  CHECK(box.launch == 4_us);
  CHECK(box.submit == 6_us);
  CHECK(box.chunk == 8_MiB);
  CHECK(box.sharing == Sharing{2, 8});
  CHECK(box.host == HostMemory{128_GiB, true, 2300_us, BytesPerSecond{8'400'000'000}});
  box.h2d.times = {{64_KiB, 17_us}, {4_MiB, 350'001_ns}};
  box.h2d.duplex_ppm = 712'500;
  box.d2h.slowdown_ppm = 23'400;
  CHECK(parse_machine(machine_file(box), "copy.json") == box);
}

}  // namespace tidepool::machine_test
