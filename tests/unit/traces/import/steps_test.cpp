#include "traces/import/steps.hpp"

#include <array>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::steps_test {

namespace {

using Steps = std::vector<FoundStep>;

/// The steps of a string in which each character is an op.
Steps find(std::string_view ops, std::span<const std::int64_t> live = {}) {
  const std::vector<std::uint32_t> names(ops.begin(), ops.end());
  return find_steps(names, live);
}

std::string times(int count, std::string_view part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

/// Steps of equal length, from `first` on.
Steps equal_steps(std::size_t count, std::size_t length, std::size_t first = 0) {
  Steps steps;
  for (std::size_t i = 0; i < count; ++i) steps.push_back({first + i * length, first + (i + 1) * length});
  return steps;
}

const std::string kMicroBatch = times(5, "abcd") + "ef";
const std::string kAccumulated = times(4, kMicroBatch) + "xyzxz";  // 93 ops

}  // namespace

TEST_CASE("the iterations of a loop are the steps, and ops before and after the loop belong to none") {
  CHECK(find(times(5, "abc")) == equal_steps(5, 3));
  CHECK(find("pqrst" + times(4, "abacdefe") + "vw") == equal_steps(4, 8, 5));
}

TEST_CASE("four micro-batches of five layers and an optimizer are one step") {
  for (const std::size_t count : {2U, 3U, 6U, 20U})
    CHECK(find(times(static_cast<int>(count), kAccumulated)) == equal_steps(count, 93));
}

TEST_CASE("long repetitions of other ops before the loop are no steps") {
  const std::string prologue = times(161, "h") + times(53, "uvv") + times(322, "v");
  CHECK(find(prologue + times(3, kAccumulated)) == equal_steps(3, 93, prologue.size()));
}

TEST_CASE("a first step that makes the optimizer's state is a step like the others") {
  const std::string first = times(4, kMicroBatch) + times(40, "v") + "xyzxz";
  Steps steps = equal_steps(3, 93, first.size());
  steps.insert(steps.begin(), {0, first.size()});
  CHECK(find(first + times(3, kAccumulated)) == steps);
}

TEST_CASE("a first step that is mostly different is left out") {
  const std::string first = "jklmnjklopqrstu" + times(4, "GHI") + "xyzxz";
  CHECK(find(first + times(3, kAccumulated)).size() == 3);
}

TEST_CASE("a program that never repeats, or runs its step once, has no steps") {
  CHECK(find("").empty());
  CHECK(find("a").empty());
  CHECK(find("aaaaaaaa").empty());
  CHECK(find("abcdefghijklmnopqrstuvwxyz").empty());
  CHECK(find(times(12, "abcd") + "efghijkl" + times(12, "mnop") + "qrstuvw").empty());
}

TEST_CASE("layers are no steps, even if they are most of the job, since they fill or empty the memory") {
  // 12 layers forward, which leave 10 B each, and 12 layers backward, which free them.
  const std::string job = "s" + times(12, "abcd") + "t" + times(12, "efgh") + "u";
  std::vector<std::int64_t> live;
  for (std::size_t i = 0; i < job.size(); ++i) {
    const auto layers = static_cast<std::int64_t>(i / 4);
    live.push_back(10 * (layers < 12 ? layers : 24 - layers));
  }
  CHECK(find(times(12, "abcd"), std::vector<std::int64_t>(48, 7)).size() == 12);
  CHECK(find(times(12, "abcd"), {live.data(), 48}).empty());
  CHECK(find(job, live).empty());
  std::vector<std::int64_t> vast;  // each layer leaves 2^61 B
  for (std::int64_t i = 0; i < 16; ++i) vast.push_back(i / 4 << 61);
  CHECK(find(times(4, "abcd"), vast).empty());
}

TEST_CASE("a step begins where few bytes are live") {
  // The recording begins between forward and backward.
  const std::string job = "defgh" + times(4, "abcdefgh");
  std::vector<std::int64_t> live;
  for (const char op : job) live.push_back(op == 'a' ? 0 : op <= 'd' ? 100 * (op - 'a') : 100 * ('h' - op + 1));
  CHECK(find(job) == equal_steps(4, 8));
  CHECK(find(job, live) == equal_steps(4, 8, 5));
}

TEST_CASE("a log after every ten steps does not make ten steps into one") {
  const std::string step = times(30, "abcd") + times(30, "efgh") + "xyz";
  const std::string ten = times(10, step) + "L";
  const Steps steps = find(times(4, ten));
  REQUIRE(steps.size() == 40);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].first == i * step.size() + i / 10);
}

TEST_CASE("fifty steps and a test are an epoch, not a step") {
  const std::string epoch = times(50, "abcdefgh") + times(10, "abct");
  const Steps steps = find(times(3, epoch));
  REQUIRE(steps.size() >= 150);
  CHECK(steps[0] == FoundStep{0, 8});
  CHECK(steps[49] == FoundStep{392, 400});
}

TEST_CASE("missing, additional or different ops here and there do not hide a step") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    std::mt19937 random{seed};
    std::string job;
    std::vector<std::size_t> begins;
    for (int i = 0; i < 12; ++i) {
      begins.push_back(job.size());
      std::string step = kAccumulated;
      const std::size_t at = 5 + random() % 70;
      step.replace(at, 1, std::array{"", "N", "aa", "bN"}[random() % 4]);
      job += step;
    }
    const Steps steps = find(job);
    INFO(seed << " " << job);
    REQUIRE(steps.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) CHECK(steps[i].first == begins[i]);
    CHECK(steps.back().last == job.size());
  }
}

TEST_CASE("in a real report, the steps found by names alone are those of its ranges") {
  const auto path = tests::shared_data("nsys/nsys_cs336_jsun.sqlite.gz");
  if (!path) return;
  const Trace trace = load_trace(*path);
  std::vector<std::uint32_t> names;
  std::map<std::string_view, std::uint32_t> ids;
  std::vector<std::size_t> ranges;
  std::size_t mark = 0;
  const auto& marks = trace.data().marks;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    for (; mark < marks.size() && marks[mark].event <= i; ++mark)
      if (marks[mark].kind == MarkKind::kIteration) ranges.push_back(names.size());
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const std::string_view name = trace.text(trace.op(OpId{trace.events()[i].id}).name);
    names.push_back(ids.try_emplace(name, static_cast<std::uint32_t>(ids.size())).first->second);
  }
  REQUIRE(ranges.size() == 6);  // five steps, and the ops after them
  const Steps steps = find_steps(names);
  REQUIRE(steps.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(steps[i].last == ranges[i + 1]);
}

}  // namespace tidepool::steps_test
