#include "simulator/studies/sweep/frontier.hpp"

#include <limits>

#include "simulator/run_spec.hpp"
#include "simulator/studies/text/terminal.hpp"
#include "tests/catch.hpp"

namespace tidepool::frontier_test {

namespace {

Frontier small_frontier() {
  const std::vector<Point> points{{"none", "best-fit", true, 500_MiB, Outcome::kOutOfMemory, 0},
                                  {"none", "best-fit", true, 750_MiB, Outcome::kOutOfMemory, 0},
                                  {"none", "best-fit", true, 1000_MiB, Outcome::kOk, 0},
                                  {"lru-swap", "best-fit", true, 500_MiB, Outcome::kTimeLimit, 0},
                                  {"lru-swap", "best-fit", true, 750_MiB, Outcome::kOk, 0.305},
                                  {"lru-swap", "best-fit", true, 1000_MiB, Outcome::kOk, 0.0625},
                                  {"lru-swap", "ideal", false, 500_MiB, Outcome::kOk, 0.99},
                                  {"lru-swap", "ideal", false, 750_MiB, Outcome::kOk, 0.1},
                                  {"lru-swap", "ideal", false, 1000_MiB, Outcome::kOk, 0},
                                  {"lru-swap", "ideal", false, kNoLimit, Outcome::kOk, 0}};
  Frontier frontier{"small.jsonl", "a100-pcie4", 1000_MiB, 2_ms, {}, {}};
  arrange(points, frontier);
  return frontier;
}

}  // namespace

TEST_CASE("a table has a row for every policy and pool and a column for every capacity") {
  CHECK(table(small_frontier(), 80) ==
        "small.jsonl on a100-pcie4: peak 1000 MiB, 2 ms without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool       0.5x  0.75x     1x   none\n"
        "none      best-fit    OOM    OOM    0.0      -\n"
        "lru-swap  best-fit   slow   30.5    6.2      -\n"
        "          ideal*     99.0   10.0    0.0    0.0\n"
        "OOM: out of memory; slow: over the time limit\n*: counts bytes, knows no addresses\n");
}

TEST_CASE("below the policies, a table has the bounds on plans with the same actions") {
  const std::vector<Point> points{
      {"none", "best-fit", true, 500_MiB, Outcome::kOutOfMemory, 0, "", 0.0},
      {"none", "best-fit", true, 1000_MiB, Outcome::kOk, 0, "", 0.0},
      {"dtr", "best-fit", true, 500_MiB, Outcome::kOutOfMemory, 0, "remat", std::numeric_limits<double>::infinity()},
      {"dtr", "best-fit", true, 1000_MiB, Outcome::kOk, 0.0625, "remat", 0.0401},
      {"lru-swap", "best-fit", true, 500_MiB, Outcome::kOk, 0.5, "swap", {}},
      {"lru-swap", "best-fit", true, 1000_MiB, Outcome::kOk, 0.25, "swap", 0.1}};
  Frontier frontier{"small.jsonl", "a100-pcie4", 1000_MiB, 2_ms, {}, {}};
  arrange(points, frontier);
  CHECK(table(frontier, 80) ==
        "small.jsonl on a100-pcie4: peak 1000 MiB, 2 ms without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool      0.5x    1x\n"
        "none      best-fit   OOM   0.0\n"
        "dtr       best-fit   OOM   6.2\n"
        "lru-swap  best-fit  50.0  25.0\n"
        "bound for remat      inf   4.0\n"
        "bound for swap         -  10.0\n"
        "OOM: out of memory; inf: cannot be done\n");
}

TEST_CASE("columns are separated by one character if they only fit that way") {
  CHECK(table(small_frontier(), 45) ==
        "small.jsonl on a100-pcie4: peak 1000 MiB, 2 ms without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool      0.5x 0.75x    1x  none\n"
        "none      best-fit   OOM   OOM   0.0     -\n"
        "lru-swap  best-fit  slow  30.5   6.2     -\n"
        "          ideal*    99.0  10.0   0.0   0.0\n"
        "OOM: out of memory; slow: over the time limit\n*: counts bytes, knows no addresses\n");
}

TEST_CASE("columns that do not fit are printed below the others") {
  CHECK(table(small_frontier(), 34) ==
        "small.jsonl on a100-pcie4: peak 1000 MiB, 2 ms without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool       0.5x  0.75x\n"
        "none      best-fit    OOM    OOM\n"
        "lru-swap  best-fit   slow   30.5\n"
        "          ideal*     99.0   10.0\n"
        "policy    pool         1x   none\n"
        "none      best-fit    0.0      -\n"
        "lru-swap  best-fit    6.2      -\n"
        "          ideal*      0.0    0.0\n"
        "OOM: out of memory; slow: over the time limit\n*: counts bytes, knows no addresses\n");
}

TEST_CASE("a plot shows overhead against memory with units on both axes") {
  // 30.5 % is at log10(31.5) = 1.498, the top of 7 rows; 6.25 % is at log10(7.25) = 0.860, 4 rows up.
  CHECK(plot(small_frontier(), {.width = 49, .height = 8}) ==
        "small.jsonl on a100-pcie4: overhead against memory, best pool of each policy\n"
        "     30 %|b..\n"
        "         |   .....\n"
        "     10 %|        .....\n"
        "         |             .....                 b\n"
        "      3 %|                  .....\n"
        "         |                       .....\n"
        "         |                            .....\n"
        "      0 %|                                 ..a\n"
        "         ++--------+--------+-------+--------+\n"
        "         750      812      875     938     1000\n"
        "                      memory, MiB\n"
        "a none  b lru-swap  . best of all\n");
}

TEST_CASE("the best pool of a policy is one with addresses, if there is one") {
  const std::vector<Line> best = best_pools(small_frontier());
  REQUIRE(best.size() == 2);
  CHECK(best[1].policy == "lru-swap");
  CHECK(best[1].cells[0].outcome == Outcome::kTimeLimit);
  CHECK(best[1].cells[1].overhead == 0.305);
}

TEST_CASE("the median represents runs that differ in their seeds, and a run that ended early is the worst") {
  const auto at_median = [](const std::vector<Point>& points) {
    Frontier frontier;
    arrange(points, frontier);
    return frontier.lines.at(0).cells.at(0);
  };
  const Point ok1{"p", "q", true, 1_MiB, Outcome::kOk, 0.1}, ok2{"p", "q", true, 1_MiB, Outcome::kOk, 0.2};
  const Point oom{"p", "q", true, 1_MiB, Outcome::kOutOfMemory, 0};
  CHECK(at_median({oom, ok2, ok1}).overhead == 0.2);
  CHECK(at_median({ok1, ok2}).overhead == 0.2);
  CHECK(at_median({oom, ok2}).outcome == Outcome::kOutOfMemory);
  CHECK(at_median({oom, ok2, oom}).outcome == Outcome::kOutOfMemory);
}

TEST_CASE("a capacity is a fraction of the peak, without exponents") {
  CHECK(fraction_text(123_MiB, 10_MiB) == "12.3x");
  CHECK(fraction_text(Bytes{16'400'000}, Bytes{1'000}) == "16400x");
  CHECK(fraction_text(Bytes{9'996}, Bytes{10}) == "1000x");
  CHECK(fraction_text(kNoLimit, 10_MiB) == "none");
}

TEST_CASE("nothing is plotted if no run with a limit ended well") {
  Frontier frontier;
  arrange(std::vector<Point>{{"none", "ideal", false, kNoLimit, Outcome::kOk, 0},
                             {"none", "ideal", false, 1_MiB, Outcome::kOutOfMemory, 0}},
          frontier);
  CHECK(plot(frontier, {}) == "");
}

TEST_CASE("a run of a step that takes no time has no overhead in tables and plots") {
  const std::vector<Point> points{{"none", "best-fit", true, 500_MiB, Outcome::kOutOfMemory, {}},
                                  {"none", "best-fit", true, 1000_MiB, Outcome::kOk, {}},
                                  {"lru-swap", "best-fit", true, 500_MiB, Outcome::kOk, {}},
                                  {"lru-swap", "best-fit", true, 1000_MiB, Outcome::kOk, {}}};
  Frontier frontier{"small.jsonl", "a100-pcie4", 1000_MiB, 0_ns, {}, {}};
  arrange(points, frontier);
  CHECK(table(frontier, 80) ==
        "small.jsonl on a100-pcie4: peak 1000 MiB, 0 ns without limit\n"
        "overhead in % by capacity (x: times the peak)\n"
        "policy    pool      0.5x    1x\n"
        "none      best-fit   OOM    ok\n"
        "lru-swap  best-fit    ok    ok\n"
        "OOM: out of memory\n");
  CHECK(plot(frontier, {}).empty());
}

TEST_CASE("overheads that would flatten the rest of the plot are named, not drawn") {
  Frontier frontier{"t", "m", 4_MiB, 1_ms, {}, {}};
  arrange(std::vector<Point>{{"a", "q", true, 1_MiB, Outcome::kOk, 50}, {"a", "q", true, 2_MiB, Outcome::kOk, 0.5}},
          frontier);
  const std::string drawn = plot(frontier, {.width = 60, .height = 6});
  INFO(drawn);
  CHECK(drawn.ends_with("not shown: overheads above 1000 %\n"));
  CHECK(drawn.find("1000 % |") == std::string::npos);
}

TEST_CASE("the best pools of a policy are named with the capacities at which they are best") {
  Frontier frontier;
  arrange(std::vector<Point>{{"p", "first", true, 1_MiB, Outcome::kOk, 0.5},
                             {"p", "first", true, 2_MiB, Outcome::kOk, 0.1},
                             {"p", "second", true, 1_MiB, Outcome::kOk, 0.2},
                             {"p", "second", true, 2_MiB, Outcome::kOk, 0.1},
                             {"q", "second", true, 2_MiB, Outcome::kOutOfMemory, 0}},
          frontier);
  const std::vector<Line> best = best_pools(frontier);
  REQUIRE(best.size() == 2);
  CHECK(best[0].pool == "second, first");
  CHECK(best[0].cells[0].pool == "second");
  CHECK(best[0].cells[0].overhead == 0.2);
  CHECK(best[0].cells[1].pool == "first");
  CHECK(best[1].pool == "second");
}

}  // namespace tidepool::frontier_test
