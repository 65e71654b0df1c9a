#include "policies/pool/smartpool/smartpool_pool.hpp"
#include "simulator/engine/segment_device.hpp"
#include "simulator/run_spec.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::smartpool_test {

namespace {

using Events = std::vector<SmartPoolEvent>;

Events sizes(const std::vector<std::int64_t>& signature) {
  Events events;
  for (const std::int64_t one : signature) events.push_back({one});
  return events;
}

/// The authors' search, limited to positions inside the string.
SmartPoolPeriod by_all_pairs(const Events& events) {
  SmartPoolPeriod found;
  for (std::size_t i = 0; i < events.size(); ++i)
    for (std::size_t length = 2; i + 2 * length <= events.size() + 1; ++length) {
      bool equal = true;
      for (std::size_t k = i; k < i + length - 1; ++k)
        equal = equal && events[k].signature == events[k + length].signature;
      if (equal && length > found.length) found = {i, length};
    }
  return found;
}

/// Mallocs and frees by block number: {3, size} allocates block 3, {-3, 0} frees it.
Events string_of(const std::vector<std::pair<int, std::int64_t>>& steps) {
  Events events;
  std::vector<std::size_t> begun(100);
  for (const auto& [block, size] : steps)
    if (block > 0) {
      begun[static_cast<std::size_t>(block)] = events.size();
      events.push_back({size});
    } else {
      const std::size_t malloc = begun[static_cast<std::size_t>(-block)];
      events.push_back({static_cast<std::int64_t>(events.size() - malloc), malloc});
    }
  return events;
}

Bytes offset_of(const SmartPoolPlan& plan, std::size_t malloc) {
  for (const SmartPoolSlot& slot : plan.slots)
    if (slot.malloc == malloc) return slot.offset;
  throw std::logic_error{"no such slot"};
}

/// Requests like those of a training loop: each iteration allocates and frees `blocks` blocks of 1, 2, ... KiB.
class Loop {
 public:
  explicit Loop(SmartPool& pool) : pool_{pool} { pool.start(trace_, kNoLimit, device); }

  void iteration(int blocks, Bytes first = 1_KiB) {
    for (int i = 0; i < blocks; ++i) {
      const Block block = pool_.place({i == 0 ? first : Bytes{1024 * (i + 1)}}).value();
      pool_.release(block);
    }
  }

  SegmentDevice device{kNoLimit};

 private:
  Trace trace_ = TraceBuilder{}.finish();
  SmartPool& pool_;
};

}  // namespace

TEST_CASE("SmartPool compares the events of a part except the last one") {
  CHECK(longest_repetition(sizes({9, 1, 2, 3, 1, 2, 4})) == SmartPoolPeriod{1, 3});
  CHECK(longest_repetition(sizes({9, 1, 2, 3, 1, 5, 4})) == SmartPoolPeriod{});
  CHECK(longest_repetition({}) == SmartPoolPeriod{});
}

TEST_CASE("SmartPool finds the same repetition as its authors' search") {
  tests::Random random{7};
  for (int round = 0; round < 300; ++round) {
    Events events;
    for (std::size_t n = random.below(40); n > 0; --n)
      events.push_back({static_cast<std::int64_t>(random.below(1 + static_cast<std::size_t>(round) % 4))});
    INFO("round " << round);
    CHECK(longest_repetition(events) == by_all_pairs(events));
  }
}

TEST_CASE("SmartPool takes an iteration of more than 100 events, and cuts it where a part of more than 50 repeats") {
  for (const auto& [length, found] : {std::pair{100, 0}, std::pair{101, 101}}) {
    Events events;
    for (int i = 0; i < 2 * length; ++i) events.push_back({i % length + 1});
    CHECK(find_smartpool_period(events).length == static_cast<std::size_t>(found));
  }
  Events two;  // 120 events come twice in a part of 240, which comes twice
  for (int i = 0; i < 480; ++i) two.push_back({i % 240 == 239 ? 1'000 : i % 120});
  CHECK(find_smartpool_period(two) == SmartPoolPeriod{0, 120});
}

TEST_CASE("SmartPool places two copies of the blocks that live into the next iteration below all others") {
  // Block 1 (5 B) is never freed; blocks 2 and 3 are never live together.
  const Events events = string_of({{1, 5}, {2, 7}, {-2, 0}, {3, 6}, {-3, 0}});
  const SmartPoolPlan plan = plan_smartpool(events, {0, 5}, SmartPoolFit::kBest);
  CHECK(plan.cross == 5_B);
  CHECK(plan.height == 17_B);
  CHECK(offset_of(plan, 0) == 0_B);
  CHECK(offset_of(plan, 1) == 10_B);
  CHECK(offset_of(plan, 3) == 10_B);
}

TEST_CASE("if there are two holes, SmartPool's best fit overlooks the lowest one") {
  // Block 1 (10 B) is at 0, 2 (9 B) above it, 3 (8 B) above 2, 4 (7 B) above 3. 1 and 3 are freed. Then 5 (2 B) is live
  // with 2 and 4: the holes are [0, 10) and [19, 27). Without 3 and 4 there is one hole, and it is found.
  const Events events =
      string_of({{1, 10}, {2, 9}, {3, 8}, {4, 7}, {-1, 0}, {-3, 0}, {5, 2}, {-5, 0}, {-2, 0}, {-4, 0}});
  CHECK(offset_of(plan_smartpool(events, {0, 10}, SmartPoolFit::kFirst), 6) == 0_B);
  CHECK(offset_of(plan_smartpool(events, {0, 10}, SmartPoolFit::kBest), 6) == 19_B);
  const Events fewer = string_of({{1, 10}, {2, 9}, {-1, 0}, {5, 2}, {-5, 0}, {-2, 0}});
  CHECK(offset_of(plan_smartpool(fewer, {0, 6}, SmartPoolFit::kBest), 3) == 0_B);
}

TEST_CASE("SmartPool serves iterations from its pool after it has seen two of them") {
  SmartPool pool{SmartPoolFit::kBest};
  Loop loop{pool};
  for (int i = 0; i < 2; ++i) loop.iteration(60);  // 240 events; the search begins after 300
  CHECK(pool.report().period == SmartPoolPeriod{});
  for (int i = 0; i < 10; ++i) loop.iteration(60);
  const SmartPoolReport report = pool.report();
  CHECK(report.period.length == 120);
  CHECK(report.pool == 60_KiB);
  CHECK(report.load == 60_KiB);
  CHECK(report.usage == 60_KiB);
  CHECK(report.misses == 0);
  CHECK(report.hits > 0);
  CHECK(loop.device.most_reserved() == 60_KiB);
}

TEST_CASE("after one additional request, SmartPool finds wrong slots for the rest of the job") {
  SmartPool pool{SmartPoolFit::kBest};
  Loop loop{pool};
  for (int i = 0; i < 13; ++i) loop.iteration(60);
  loop.iteration(1, 3_MiB);
  const std::int64_t hits = pool.report().hits, misses = pool.report().misses;
  for (int i = 0; i < 5; ++i) loop.iteration(60);
  CHECK(pool.report().hits == hits);
  CHECK(pool.report().misses == misses + 300);
}

TEST_CASE("SmartPool counts one request of another size as a miss, and continues") {
  SmartPool pool{SmartPoolFit::kBest};
  Loop loop{pool};
  for (int i = 0; i < 13; ++i) loop.iteration(60);
  const std::int64_t hits = pool.report().hits;
  loop.iteration(60, 3_MiB);
  loop.iteration(60);
  CHECK(pool.report().hits == hits + 119);
  CHECK(pool.report().misses == 1);
}

}  // namespace tidepool::smartpool_test
