#include "traces/import/updates.hpp"

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::updates_test {

namespace {

using Steps = std::vector<FoundStep>;

/// A job: blocks 0 and 1 are weights, block 2 is the optimizer's state, block 3 a metric.
struct Job {
  std::string names;
  std::vector<BlockUse> uses;
  std::vector<std::int64_t> bytes{1000, 1000, 2000, 512};

  void run(char name) { names.push_back(name); }
  void use(std::uint32_t block, Access access) {
    uses.push_back({static_cast<std::uint32_t>(names.size()), block, access});
  }
  void forward(std::string_view layers) {
    for (const char op : layers) {
      use(0, Access::kRead), use(1, Access::kRead);
      run(op);
    }
  }
  /// `count` ops that read the weights and update nothing.
  void log(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      use(static_cast<std::uint32_t>(i % 2), Access::kRead);
      run(static_cast<char>('A' + i % 7));
    }
  }
  /// An op that updates the state, then one op for each weight; the first of these reads the state.
  void update() {
    use(2, Access::kReadWrite), run('u');
    use(2, Access::kRead), use(0, Access::kReadWrite), run('v');
    use(1, Access::kReadWrite), run('w');
  }
  Steps steps() const {
    const std::vector<std::uint32_t> letters(names.begin(), names.end());
    return steps_with_updates(letters, find_steps(letters), find_updates(letters.size(), uses, bytes));
  }
  std::size_t repeated() const { return find_steps(std::vector<std::uint32_t>(names.begin(), names.end())).size(); }
};

constexpr std::string_view kLayers = "abcdabcdefghefgh";

}  // namespace

TEST_CASE("a long log in every second step does not make two steps into one") {
  Job job;
  Steps expected;
  std::size_t begin = 0;
  for (int step = 0; step < 8; ++step) {
    job.forward(kLayers);
    if (step % 2 == 1) job.log(30);
    job.update();
    expected.push_back({begin, job.names.size()});
    begin = job.names.size();
  }
  CHECK(job.repeated() == 4);
  CHECK(job.steps() == expected);
}

TEST_CASE("the prologue of a job belongs to no step, and the first step begins like the second one") {
  for (const std::size_t micro_batches : {1U, 4U}) {
    Job job;
    for (int i = 0; i < 50; ++i) job.run("xyz"[i % 3]);
    Steps expected;
    std::size_t begin = job.names.size();
    for (int step = 0; step < 6; ++step) {
      for (std::size_t i = 0; i < micro_batches; ++i) job.forward(kLayers);
      if (step % 4 == 3) job.log(40);
      job.update();
      expected.push_back({begin, job.names.size()});
      begin = job.names.size();
    }
    INFO(micro_batches);
    CHECK(job.steps() == expected);
  }
}

TEST_CASE("a step ends with the last of several writes of weights that no op reads in between") {
  Job job;
  for (int step = 0; step < 3; ++step) {
    job.forward("abcd");
    job.use(0, Access::kReadWrite), job.use(1, Access::kReadWrite), job.run('d');  // weight decay
    job.update();
  }
  CHECK(find_updates(job.names.size(), job.uses, job.bytes) == std::vector<std::size_t>{7, 15, 23});
}

TEST_CASE("a fused optimizer whose accesses to the weights are unknown updates them") {
  Job job;
  for (int step = 0; step < 3; ++step) {
    job.forward("abcd");
    for (const std::uint32_t weight : {0U, 1U}) job.use(weight, Access::kTouch);
    job.run('u');
  }
  CHECK(find_updates(job.names.size(), job.uses, job.bytes) == std::vector<std::size_t>{4, 9, 14});
  for (BlockUse& use : job.uses) use.block += 3;  // a metric
  job.bytes = {1000, 1000, 2000, 512, 512};
  for (const std::uint32_t op : {0U, 14U}) job.uses.push_back({op, 2, Access::kRead});
  CHECK(find_updates(job.names.size(), job.uses, job.bytes).empty());
}

TEST_CASE("a checkpoint, which copies the optimizer's state to the host, does not join the steps before it into one") {
  Job job;
  job.bytes = {1000, 1000, 4000, 512, 4000};  // 2 and 4 are the optimizer's state
  for (int step = 0; step < 12; ++step) {
    job.forward("abcd");
    for (const std::uint32_t block : {0U, 1U, 2U, 4U}) job.use(block, Access::kTouch);
    job.run('u');
    if (step % 4 != 3) continue;
    for (const std::uint32_t block : {0U, 1U, 2U, 4U}) {
      job.use(block, Access::kRead);
      job.uses.back().copied = true;
      job.run('h');
    }
  }
  CHECK(find_updates(job.names.size(), job.uses, job.bytes).size() == 12);
  for (BlockUse& use : job.uses) use.copied = false;  // then the reads of the three checkpoints would end steps
  CHECK(find_updates(job.names.size(), job.uses, job.bytes).size() == 2);
}

TEST_CASE("a metric, a workspace and a buffer that lives for only a part of the job are no weights") {
  Job job;
  for (int step = 0; step < 12; ++step) {
    job.forward(kLayers);
    job.use(3, Access::kReadWrite), job.run('m');
    if (step % 3 == 2) job.use(3, Access::kRead), job.run('p');
  }
  job.bytes.push_back(1 << 20);  // a workspace, which every op that uses it writes
  job.bytes.push_back(1 << 20);
  for (std::uint32_t op = 0; op < job.names.size(); ++op) job.uses.push_back({op, 4, Access::kWrite});
  for (const std::uint32_t op : {3U, 7U, 11U, 15U})
    job.uses.push_back({op, 5, op % 8 == 7 ? Access::kWrite : Access::kRead});
  CHECK(find_updates(job.names.size(), job.uses, job.bytes).empty());
}

TEST_CASE("steps that have one update each are kept, and a missing first step is added") {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < 40; ++i) names.push_back(i % 10);
  const std::vector<std::size_t> updates{8, 18, 28, 38};
  const Steps all{{0, 10}, {10, 20}, {20, 30}, {30, 40}};
  CHECK(steps_with_updates(names, all, updates) == all);
  CHECK(steps_with_updates(names, all, {}) == all);
  CHECK(steps_with_updates(names, {{10, 20}, {20, 30}, {30, 40}}, updates) == all);
  CHECK(steps_with_updates(names, {{0, 20}, {20, 40}}, updates) == Steps{{0, 9}, {9, 19}, {19, 29}, {29, 39}});
  CHECK(steps_with_updates(names, {{0, 10}, {10, 20}, {20, 30}}, updates) ==
        Steps{{0, 9}, {9, 19}, {19, 29}, {29, 39}});
}

TEST_CASE("if a step is missing between the found ones, the steps are those that end with the updates") {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < 40; ++i) names.push_back(i % 10);
  CHECK(steps_with_updates(names, {{0, 10}, {10, 20}, {30, 40}}, std::vector<std::size_t>{8, 18, 28, 38}) ==
        Steps{{0, 9}, {9, 19}, {19, 29}, {29, 39}});
}

TEST_CASE("a first step that differs from all others is left out") {
  std::vector<std::uint32_t> names(40, 0);
  std::iota(names.begin(), names.begin() + 10, 1U);
  const Steps later{{10, 20}, {20, 30}, {30, 40}};
  CHECK(steps_with_updates(names, later, std::vector<std::size_t>{8, 18, 28, 38}) == later);
}

TEST_CASE("a first step is recognised by the first 64 positions of the second one, so that the search is linear") {
  const auto steps_if_different = [](std::size_t different) {
    std::vector<std::uint32_t> names(400);
    for (std::uint32_t i = 0; i < 400; ++i) names[i] = i % 200;
    for (std::size_t i = 0; i < different; ++i) names[200 + i] += 1000;  // as if a warm-up ran other kernels
    return steps_with_updates(names, {{200, 400}}, std::vector<std::size_t>{199, 399});
  };
  CHECK(steps_if_different(63) == Steps{{0, 200}, {200, 400}});
  CHECK(steps_if_different(64) == Steps{{200, 400}});
}

TEST_CASE(
    "a first step is recognised after any number of equal ops, such as those that set the optimizer's state to zero") {
  std::vector<std::uint32_t> names(480, 900);
  for (std::uint32_t i = 0; i < 200; ++i) names[i] = names[280 + i] = i;
  CHECK(steps_with_updates(names, {{200, 480}}, std::vector<std::size_t>{199, 479}) == Steps{{0, 200}, {200, 480}});
  names.insert(names.begin(), 100, 901);  // the ops of the job before its first step
  CHECK(steps_with_updates(names, {{300, 580}}, std::vector<std::size_t>{299, 579}) == Steps{{100, 300}, {300, 580}});
}

}  // namespace tidepool::updates_test
