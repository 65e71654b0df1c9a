#include "traces/import/forward_steps.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::forward_steps_test {

namespace {

/// A job with forward iterations only. Block 0 has the weights, block 1 the count of a metric.
struct Job {
  std::string names;
  std::vector<BlockUse> uses;
  std::vector<std::int64_t> bytes{1 << 20, 512};
  Access access_of_layers = Access::kWrite;
  bool keeps_last = false;  ///< whether each iteration reads the last block of the one before

  void run(char name, std::initializer_list<std::pair<std::size_t, Access>> blocks = {}) {
    for (const auto& [block, access] : blocks)
      uses.push_back({static_cast<std::uint32_t>(names.size()), static_cast<std::uint32_t>(block), access});
    names.push_back(name);
  }
  /// An iteration: a batch from the host, two ops for each layer, and an update of the count.
  void iteration(std::size_t layers) {
    const std::size_t before = bytes.size() - 1;
    bytes.push_back(4096);
    run('i', {{bytes.size() - 1, Access::kWrite}});
    if (keeps_last && before > 1) run('k', {{before, Access::kRead}});
    for (std::size_t layer = 0; layer < 2 * layers; ++layer) {
      bytes.push_back(4096);
      run(layer % 2 == 0 ? 'm' : 'g',
          {{0, Access::kRead}, {bytes.size() - 2, Access::kRead}, {bytes.size() - 1, access_of_layers}});
    }
    run('s', {{bytes.size() - 1, Access::kRead}, {1, Access::kReadWrite}});
  }
  void log() {
    for (const char op : std::string_view{"pqrtuvw"}) run(op, {{1, Access::kRead}});
  }
  std::vector<FoundStep> repeated() const { return find_steps(std::vector<std::uint32_t>(names.begin(), names.end())); }
  std::vector<FoundStep> steps() const {
    const std::vector<std::uint32_t> letters(names.begin(), names.end());
    return divided_forward_steps(letters, repeated(), uses, bytes);
  }
};

}  // namespace

TEST_CASE("a log after every fourth iteration of an evaluation does not make four iterations into one") {
  Job job;
  std::vector<FoundStep> expected;
  for (int i = 0; i < 24; ++i) {
    const std::size_t first = job.names.size();
    job.iteration(6);
    if (i % 4 == 3) job.log();
    expected.push_back({first, job.names.size()});
  }
  expected.back().last -= 7;  // the last step ends before the log, with the update of the count
  CHECK(job.repeated().size() == 6);
  CHECK(job.steps() == expected);
}

TEST_CASE("iterations that read content of the one before are not divided") {
  Job job;
  job.keeps_last = true;
  for (int i = 0; i < 24; ++i) {
    job.iteration(6);
    if (i % 4 == 3) job.log();
  }
  CHECK(job.steps() == job.repeated());
}

TEST_CASE("two networks in turn are one iteration, even if they are independent") {
  Job job;
  for (int i = 0; i < 12; ++i) {
    job.iteration(6);
    const std::size_t second = job.names.size();
    job.iteration(6);
    for (std::size_t at = second; at < job.names.size(); ++at) job.names[at] = static_cast<char>(job.names[at] - 32);
  }
  CHECK(job.repeated().size() == 12);
  CHECK(job.steps() == job.repeated());
}

TEST_CASE("nothing is concluded if most uses are unknown") {
  Job job;
  job.access_of_layers = Access::kTouch;
  for (int i = 0; i < 24; ++i) {
    job.iteration(6);
    if (i % 4 == 3) job.log();
  }
  for (BlockUse& use : job.uses) use.access = Access::kTouch;
  CHECK(job.steps() == job.repeated());
}

}  // namespace tidepool::forward_steps_test
