// The predictions that AutoSwap's authors published: a table to its three digits, and numbers of a script to the last
// bit.
#include "tests/golden/published_autoswap.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/base/lines.hpp"

namespace tidepool::published_autoswap_test {

using tidepool::tests::shared_data;

namespace {

/// The numbers of one row of a table, by column.
std::vector<double> row_of(std::string_view line) {
  std::vector<double> numbers;
  while (!line.empty()) {
    double value = -1;
    const auto end = std::from_chars(line.data(), line.data() + line.size(), value).ptr;
    numbers.push_back(value);
    line.remove_prefix(std::min(line.size(), static_cast<std::size_t>(end - line.data()) + 1));
  }
  return numbers;
}

}  // namespace

TEST_CASE("AutoSwap's predictions on VGG are those that its authors published") {
  const auto events = shared_data("singa/vec_block_fresh_vgg.csv.gz"),
             loads = shared_data("singa/load_origin_vgg.csv.gz");
  const auto published = shared_data("singa/autoswap_vgg_overhead_ms.csv");
  if (!events || !loads || !published) return;
  const BlockLog log = read_block_log(read_input(*events), read_input(*loads));
  CHECK(log.iteration() == 3172);
  const Input table = read_input(*published);
  Lines lines{table.path(), table.bytes()};
  REQUIRE(lines.next());
  REQUIRE(lines.text().starts_with("limit_MiB,AOA,DOA,WDOA,SWDOA,"));
  std::vector<double> limits;
  std::vector<std::vector<double>> expected;  // ms, three digits after the point
  while (lines.next()) {
    expected.push_back(row_of(lines.text()));
    limits.push_back(expected.back()[0] * 1024 * 1024);
  }
  REQUIRE(limits.size() == 40);
  constexpr std::array<GapScore, 4> kScores{GapScore::kAoa, GapScore::kDoa, GapScore::kWdoa, GapScore::kSwdoa};
  for (std::size_t c = 0; c < kScores.size(); ++c) {
    const std::vector<double> overheads = published_overheads(log, kScores[c], limits);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      INFO(fmt::format("score {} at {} MiB", c, expected[i][0]));
      CHECK(std::abs(overheads[i] / 1e6 - expected[i][c + 1]) <= 0.0005);
    }
  }
  // Some of the numbers in the authors' plot_overhead.py, ns.
  const auto at = [&](GapScore score, double mebibytes) {
    return published_overheads(log, score, {mebibytes * 1024 * 1024}).front();
  };
  CHECK(at(GapScore::kAoa, 280) == 13934524.974400029);
  CHECK(at(GapScore::kDoa, 340) == 7431057.612800017);
  CHECK(at(GapScore::kWdoa, 430) == 446113.2800000012);
  CHECK(at(GapScore::kSwdoa, 440) == 82640.6400000006);
  CHECK(at(GapScore::kDoa, 490) == 1201125.8320000023);
  CHECK(at(GapScore::kAoa, 490) == 0);
}

TEST_CASE("messages about wrong logs of block events") {
  const auto refusal = [](std::string_view events, std::string_view loads) {
    try {
      read_block_log(Input{"e.csv", events}, Input{"l.csv", loads});
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const std::string three = "Malloc a 8 0\nRead a 8 1\nFree a 8 2\n";
  CHECK(refusal("Malloc a 8\n", "") == "e.csv:1: 'Malloc a 8'; expected an event, a block, a size and a time");
  CHECK(refusal("Malloc a 8 0\n", "") == "e.csv: 1 events; expected three iterations of equal length");
  CHECK(refusal(three, "1\nx\n") == "l.csv:2: 'x'; expected a number of bytes");
  CHECK(refusal(three, "1\n2\n") == "l.csv: 2 loads for 3 events");
  CHECK(refusal(three, "1\n2\n3\n").empty());
}

TEST_CASE("a copy back that takes longer than the log begins no earlier than its block's release") {
  // Each of the three iterations has three events, 1 ns apart: a is made, b is made at the peak, a is read. 2 MiB take
  // 205744.6912 ns out and 182295.6096 ns back.
  std::string events;
  for (int i = 0; i < 9; ++i) {
    const char* const event[] = {"Malloc a", "Malloc b", "Read a"};
    events += fmt::format("{} 2097152 {}\n", event[i % 3], i);
  }
  const std::string loads = "2097152\n4194304\n2097152\n";
  const BlockLog log = read_block_log(Input{"e.csv", events}, Input{"l.csv", loads + loads + loads});
  // In the second iteration, a is off the device from 4 ns on, when b is made. The swap-in of a would begin 182295.6096
  // ns before 5 ns, but it must not begin before a is released, at 3 ns.
  const double out = 205744.6912 + 3 - 4, in = 3 - (5 - 182295.6096);
  CHECK(std::abs(published_overheads(log, GapScore::kDoa, {3 << 20}).front() - (out + in)) < 1e-6);
}

}  // namespace tidepool::published_autoswap_test
