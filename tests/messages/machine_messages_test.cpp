// Messages about wrong links, and about wrong optional parts of a machine file, word for word.
#include <string>

#include "simulator/engine/machine/machine_file.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"

namespace tidepool::machine_messages_test {

namespace {

/// Reads a machine file with `h2d` as the link to the device, and with the further keys in `more`.
Machine with_link(const std::string& h2d, const std::string& more = "") {
  return parse_machine(R"({"name": "box", "capacity": "1GiB", )" + more + R"("h2d": )" + h2d +
                           R"(, "d2h": {"rate": "1GB/s", "latency": "1us"}, "device_copy": "1GB/s",
                           "segment_alloc": "0ns", "segment_free": "0ns", "page_map": "0ns", "page_unmap": "0ns",
                           "source": "assumed"})",
                       "box.json");
}

}  // namespace

TEST_CASE("a link whose rate or latency is missing or has no unit is refused with the key") {
  CHECK_THROWS_WITH(
      with_link(R"({"latency": "1us"})"),
      "box.json: key 'h2d.rate' is missing; expected every key that simulator/engine/machine/MACHINES.md does "
      "not call optional");
  CHECK_THROWS_WITH(
      with_link(R"({"rate": "1GB/s"})"),
      "box.json: key 'h2d.latency' is missing; expected every key that simulator/engine/machine/MACHINES.md "
      "does not call optional");
  CHECK_THROWS_WITH(with_link(R"({"rate": "12.5GB", "latency": "1us"})"),
                    "box.json: h2d.rate: '12.5GB' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s "
                    "or GiB/s, as in 12.5GB/s");
  CHECK_THROWS_WITH(with_link(R"({"rate": "0GB/s", "latency": "1us"})"),
                    "box.json: h2d.rate: '0GB/s' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s "
                    "or GiB/s, as in 12.5GB/s");
  CHECK_THROWS_WITH(
      with_link(R"({"rate": "1GB/s", "latency": "1.5us"})"),
      "box.json: h2d.latency: '1.5us' is not a duration; expected a whole number and ns, us, ms or s, as in 10us");
}

TEST_CASE("times of more than an hour are refused, whose sums could overflow") {
  const std::string link = R"({"rate": "1GB/s", "latency": "1us"})";
  CHECK(with_link(R"({"rate": "1GB/s", "latency": "3600s"})").h2d.latency == 3'600'000_ms);
  CHECK_THROWS_WITH(with_link(R"({"rate": "1GB/s", "latency": "9000000000s"})"),
                    "box.json: h2d.latency: '9000000000s' is too long; expected at most 3600s");
  CHECK_THROWS_WITH(with_link(R"({"rate": "1GB/s", "latency": "1us", "times": {"1GiB": "3601s"}})"),
                    "box.json: h2d.times.1GiB: '3601s' is too long; expected at most 3600s");
  for (const std::string key : {"launch", "submit"})
    CHECK_THROWS_WITH(with_link(link, "\"" + key + R"(": "3600001ms", )"),
                      "box.json: " + key + ": '3600001ms' is too long; expected at most 3600s");
}

TEST_CASE("the remaining rate in both directions is a percentage above 0 and up to 100") {
  const auto with_duplex = [](const std::string& share) {
    return with_link(R"({"rate": "1GB/s", "latency": "1us", "duplex": ")" + share + "\"}").h2d.duplex_ppm;
  };
  CHECK(with_duplex("71%") == 710'000);
  CHECK(with_duplex("100%") == 1'000'000);
  CHECK(with_duplex("0.0001%") == 1);
  for (const std::string wrong : {"0.71", "0%", "0.00001%", "100.1%", "-5%", "71 %", "%"})
    CHECK_THROWS_WITH(with_duplex(wrong),
                      "box.json: h2d.duplex: '" + wrong +
                          "' is not a share; expected a number above 0 and up to 100 and %, as in 71%");
  CHECK_THROWS_WITH(with_link(R"({"rate": "1GB/s", "latency": "1us", "duplex": 0.71})"),
                    "box.json: h2d.duplex: 0.71; expected a text with its unit, as in \"10us\"");
  CHECK_THROWS_WITH(
      with_link(R"({"rate": "1GB/s", "latency": "1us", "dupleks": "71%"})"),
      "box.json: unknown key 'h2d.dupleks', did you mean 'duplex'?; known: rate, latency, times, duplex, slowdown");
}

TEST_CASE("measured copies are sizes and times that grow") {
  const auto with_times = [](const std::string& times) {
    return with_link(R"({"rate": "1GB/s", "latency": "10us", "times": )" + times + "}").h2d.times;
  };
  CHECK(with_times(R"({"4KiB": "11us", "1MiB": "99us"})") == std::vector<TimedSize>{{4_KiB, 11_us}, {1_MiB, 99_us}});
  const std::string expected = "; expected times of sizes that both grow, as in {\"64KiB\": \"14us\"}";
  CHECK_THROWS_WITH(with_times(R"({"4KiB": "10us"})"),
                    "box.json: h2d.times: 0B takes 10us and 4KiB takes 10us" + expected);
  CHECK_THROWS_WITH(with_times(R"({"4KiB": "11us", "4KiB ": "12us"})"),
                    "box.json: h2d.times.4KiB : '4KiB ' is not a size; expected a number and B, kB, MB, GB, TB, KiB, "
                    "MiB, GiB, TiB, K, M, G or T, as in 512MiB");
  CHECK_THROWS_WITH(with_times(R"({"8KiB": "11us", "4KiB": "12us"})"),
                    "box.json: h2d.times: 8KiB takes 11us and 4KiB takes 12us" + expected);
  CHECK_THROWS_WITH(with_times(R"({"8KiB": 11})"),
                    "box.json: h2d.times.8KiB: '11' is not a duration; expected a whole number and ns, us, ms or s, as "
                    "in 10us");
  CHECK_THROWS_WITH(with_times("{}"), "box.json: h2d.times: {}" + expected);
  CHECK_THROWS_WITH(with_times("7"), "box.json: h2d.times: 7" + expected);
}

TEST_CASE("a wrong optional value of the host is refused with its key") {
  const auto with = [](const std::string& more) {
    return with_link(R"({"rate": "1GB/s", "latency": "1us"})", more + ", ");
  };
  CHECK_THROWS_WITH(with(R"("host": {"rounding": "power-of-two"})"),
                    "box.json: host.rounding: 'power-of-two' is no rounding; expected none or power of two");
  CHECK_THROWS_WITH(with(R"("host": {"capacity": "128"})"),
                    "box.json: host.capacity: '128' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, "
                    "GiB, TiB, K, M, G or T, as in 512MiB");
  CHECK_THROWS_WITH(with(R"("host": {"pin": {"rate": "1GB/s"}})"),
                    "box.json: key 'host.pin.latency' is missing; expected every key that "
                    "simulator/engine/machine/MACHINES.md does not call optional");
  CHECK_THROWS_WITH(with(R"("host": "128GiB")"),
                    "box.json: host: not an object; expected an object with capacity, rounding, pin");
  CHECK_THROWS_WITH(with(R"("chunk": "0B")"), "box.json: chunk: '0B' is no size for a piece; expected at least 1B");
  CHECK_THROWS_WITH(with(R"("submit": 6)"), "box.json: submit: 6; expected a text with its unit, as in \"10us\"");
  CHECK_THROWS_WITH(with(R"("sumbit": "6us")"),
                    "box.json: unknown key 'sumbit', did you mean 'submit'?; known: name, capacity, h2d, d2h, "
                    "device_copy, segment_alloc, segment_free, page_map, page_unmap, host, storage, sharing, launch, "
                    "submit, chunk, source");
  CHECK_THROWS_WITH(with_link(R"({"rate": "1GB/s", "latency": "1us", "slowdown": "1001%"})"),
                    "box.json: h2d.slowdown: '1001%' is not a slow-down; expected a number from 0 to 1000 and %, as in "
                    "2%");
}

TEST_CASE("storage has a capacity and a rate each way, and the message about a wrong one names the key") {
  const auto with_storage = [](const std::string& storage) {
    return with_link(R"({"rate": "1GB/s", "latency": "1us"})", R"("storage": )" + storage + ", ");
  };
  const std::string read = R"("read": {"rate": "6GB/s", "latency": "12us", "times": {"1MiB": "200us"}})";
  const std::string write = R"("write": {"rate": "3.2GB/s", "latency": "16us"})";
  const Machine machine = with_storage(R"({"capacity": "1GiB", )" + read + ", " + write + "}");
  CHECK(machine.storage == Storage{.write = {BytesPerSecond{3'200'000'000}, 16_us},
                                   .read = {BytesPerSecond{6'000'000'000}, 12_us, {{1_MiB, 200_us}}},
                                   .capacity = 1_GiB});
  CHECK(parse_machine(machine_file(machine), "copy.json") == machine);
  CHECK_THROWS_WITH(with_storage("{" + read + ", " + write + "}"),
                    "box.json: key 'storage.capacity' is missing; expected every key that "
                    "simulator/engine/machine/MACHINES.md does not call optional");
  CHECK_THROWS_WITH(
      with_storage(R"({"capacity": "1GiB", )" + read + "}"),
      "box.json: key 'storage.write' is missing; expected every key that simulator/engine/machine/MACHINES.md "
      "does not call optional");
  CHECK_THROWS_WITH(
      with_storage(R"({"capacity": "1GiB", "write": {"rate": "3.2GB", "latency": "16us"}, )" + read + "}"),
      "box.json: storage.write.rate: '3.2GB' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or "
      "GiB/s, as in 12.5GB/s");
  CHECK_THROWS_WITH(
      with_storage(R"({"capacity": "1GiB", "write": {"rate": "1GB/s", "latency": "1us", "duplex": "5%"}, )" + read +
                   "}"),
      "box.json: unknown key 'storage.write.duplex'; known: rate, latency, times");
}

}  // namespace tidepool::machine_messages_test
