#include "simulator/solvers/packing/follower.hpp"

#include "tests/catch.hpp"

namespace tidepool::follower_test {

namespace {

std::vector<PlannedRequest> plan_of(const std::vector<int>& sizes) {
  std::vector<PlannedRequest> requests;
  for (const int size : sizes) requests.push_back({Bytes{size}, Bytes{}});
  return requests;
}

/// The planned position of each request; -1 for extra requests.
std::vector<int> follow(const std::vector<int>& planned, const std::vector<int>& job, std::size_t existing = 0) {
  const std::vector<PlannedRequest> requests = plan_of(planned);
  Follower follower{requests, existing};
  std::vector<int> seen;
  for (const int size : job) {
    const std::optional<std::size_t> position = follower.next(Bytes{size});
    seen.push_back(position ? static_cast<int>(*position) : -1);
  }
  return seen;
}

/// `count` different sizes: first, first + 1, and so on.
std::vector<int> rising(int count, int first = 100) {
  std::vector<int> sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(first + i);
  return sizes;
}

}  // namespace

TEST_CASE("a step that follows the plan gets its planned places, and the next step begins after existing buffers") {
  CHECK(follow({9, 1, 2, 1}, {9, 1, 2, 1, 1, 2, 1}, 1) == std::vector<int>{0, 1, 2, 3, 1, 2, 3});
  CHECK(follow({1, 2}, {1, 2, 1}) == std::vector<int>{0, 1, 0});
  CHECK(follow({}, {1}) == std::vector<int>{-1});
}

TEST_CASE("an extra request does not move others from their planned places") {
  CHECK(follow({1, 2, 3}, {1, 7, 2, 3}) == std::vector<int>{0, -1, 1, 2});
}

TEST_CASE("a planned request that the job skips is skipped in the plan") {
  CHECK(follow({1, 2, 3, 4}, {1, 3, 4}) == std::vector<int>{0, 2, 3});
}

TEST_CASE("an extra request that was mistaken for a later one is corrected") {
  // The 3 is taken for the planned one. Then 2 comes, which is planned at the position that the job had before.
  CHECK(follow({1, 2, 3, 4}, {1, 3, 2, 3, 4}) == std::vector<int>{0, 2, 1, 2, 3});
}

TEST_CASE("a jump beyond the look-ahead is recognised by the last requests") {
  const auto window = static_cast<int>(Follower::kWindow), far = static_cast<int>(Follower::kAhead) + 50;
  const std::vector<int> planned = rising(far + 20);
  std::vector<int> job = rising(2);
  for (const int size : rising(far + 20 - 100, 200)) job.push_back(size);  // the job continues at position 100
  const std::vector<int> seen = follow(planned, job);
  CHECK(seen[1] == 1);
  for (int i = 2; i < 2 + window - 1; ++i) CHECK(seen[static_cast<std::size_t>(i)] == -1);
  CHECK(seen[static_cast<std::size_t>(2 + window - 1)] == 100 + window - 1);
  CHECK(seen.back() == far + 19);
}

TEST_CASE("with another batch size, all requests are extra") {
  const std::vector<int> seen = follow({10, 20, 30, 40}, {11, 21, 31, 41, 11, 21, 31, 41});
  CHECK(seen == std::vector<int>(8, -1));
}

}  // namespace tidepool::follower_test
