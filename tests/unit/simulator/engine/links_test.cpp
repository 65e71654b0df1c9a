// The link, computed by hand: which copies slow others down, and during which time.
#include "simulator/engine/links.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::links_test {

namespace {

Machine duplex(std::int64_t out_ppm, std::int64_t in_ppm) {
  Machine machine;
  machine.d2h.duplex_ppm = out_ppm;
  machine.h2d.duplex_ppm = in_ppm;
  return machine;
}

Links link(std::int64_t out_ppm, std::int64_t in_ppm, bool keep_past = false) {
  return Links{duplex(out_ppm, in_ppm), 0_ns, keep_past};
}

Nanos end_out(Links& links, std::uint32_t number) { return links.resolve({0_ns, {number, 0}}); }
Nanos end_in(Links& links, std::uint32_t number) { return links.resolve({0_ns, {0, number}}); }

constexpr Direction kOut = Direction::kOut, kIn = Direction::kIn;

}  // namespace

TEST_CASE("a copy that has the link to itself takes its latency and its data") {
  Links links = link(500'000, 500'000);
  CHECK(links.add(kOut, {100_ns, {}}, 10_ns, 40_ns) == 1);
  CHECK(links.add(kOut, {100_ns, {}}, 10_ns, 40_ns) == 2);
  CHECK(end_out(links, 2) == 200_ns);  // 100-150, 150-200
  CHECK(end_out(links, 1) == 150_ns);
}

TEST_CASE("two simultaneous copies each have their share of the rate while both move data") {
  // At 71 %, the copy out moves 4,000 ns of data in 4,000 / 0.71 = 5,633.8 ns. By then, the copy in, at 71 % too, has
  // moved 4,000 of 12,000 ns.
  Links links = link(710'000, 710'000);
  links.add(kOut, {}, 0_ns, 4'000_ns);
  links.add(kIn, {}, 0_ns, 12'000_ns);
  CHECK(end_out(links, 1) == 5'634_ns);
  CHECK(end_in(links, 1) == 13'634_ns);  // 0.71 * 5,634 = 4,000.14 ns are moved; 7,999.86 ns are left
}

TEST_CASE("each direction has a share of its own") {
  // 95 % and 45 %: within 1,000 ns, the copy out moves 950 ns of data, and the copy in 450 ns. Then the copy in has the
  // link to itself.
  Links links = link(950'000, 450'000);
  links.add(kOut, {}, 0_ns, 950_ns);
  links.add(kIn, {}, 0_ns, 1'000_ns);
  CHECK(end_out(links, 1) == 1'000_ns);
  CHECK(end_in(links, 1) == 1'550_ns);
}

TEST_CASE("during its latency, a copy moves no data, so it neither slows other copies nor is slowed by them") {
  Links links = link(500'000, 500'000);
  links.add(kOut, {}, 0_ns, 100_ns);  // 0-100 alone
  links.add(kIn, {}, 100_ns, 50_ns);  // latency 0-100, data 100-150
  CHECK(end_out(links, 1) == 100_ns);
  CHECK(end_in(links, 1) == 150_ns);
  Links overlap = link(500'000, 500'000);
  overlap.add(kOut, {}, 0_ns, 100_ns);  // 0-99 alone, then 1 ns of data at half the rate
  overlap.add(kIn, {}, 99_ns, 50_ns);   // 99-101 at half the rate, then 49 ns of data alone
  CHECK(end_out(overlap, 1) == 101_ns);
  CHECK(end_in(overlap, 1) == 150_ns);
}

TEST_CASE("a copy that is added later slows a running one only from its own start on") {
  for (const auto& [begin, end] : {std::pair{100_ns, 100_ns}, {60_ns, 140_ns}, {0_ns, 200_ns}}) {
    Links links = link(500'000, 1'000'000);
    links.add(kOut, {}, 0_ns, 100_ns);
    links.add(kIn, {begin, {}}, 0_ns, 1'000_ns);
    CHECK(end_out(links, 1) == end);
    CHECK(end_in(links, 1) == begin + 1'000_ns);  // the copy in has its full rate
  }
}

TEST_CASE("a copy waits for the copies that it depends on, in both directions") {
  Links links = link(500'000, 500'000);
  const std::uint32_t first = links.add(kOut, {}, 0_ns, 100_ns);
  const std::uint32_t in = links.add(kIn, {20_ns, {first, 0}}, 5_ns, 30_ns);
  const std::uint32_t second = links.add(kOut, {0_ns, {0, in}}, 0_ns, 7_ns);
  CHECK(links.resolve({0_ns, {second, 0}}) == 142_ns);  // 0-100, 100-135, 135-142
  CHECK(links.ended(kIn, in));
  CHECK(links.resolve({200_ns, {second, in}}) == 200_ns);
}

TEST_CASE("simulated time advances only as far as a caller waits") {
  Links links = link(500'000, 500'000);
  links.add(kOut, {}, 0_ns, 100_ns);
  links.add(kOut, {}, 0_ns, 100_ns);
  CHECK(end_out(links, 1) == 100_ns);
  CHECK(links.drained() == 200_ns);
  CHECK_FALSE(links.ended(kOut, 2));
  links.add(kIn, {150_ns, {}}, 0_ns, 25_ns);  // 150-200 at half the rate; then 25 ns of the data of copy out 2 are left
  CHECK(end_out(links, 2) == 225_ns);
  CHECK(end_in(links, 1) == 200_ns);
  CHECK(links.drain() == 225_ns);
  CHECK(links.drain() == 225_ns);
}

TEST_CASE("advancing to a time ends the copies that end by then and no later ones") {
  Links links = link(500'000, 500'000);
  links.add(kOut, {}, 0_ns, 100_ns);
  links.advance(99_ns);
  CHECK_FALSE(links.ended(kOut, 1));
  CHECK(links.simplified({7_ns, {1, 0}}).after == Copies{1, 0});
  links.advance(100_ns);
  CHECK(links.ended(kOut, 1));
  CHECK(links.simplified({7_ns, {1, 0}}).time == 100_ns);
  CHECK(links.simplified({7_ns, {1, 0}}).after.none());
}

TEST_CASE("a copy that is added for a past time is slowed by the copies of that time, but does not slow them") {
  Links links = link(500'000, 500'000, true);
  links.add(kOut, {}, 0_ns, 100_ns);
  links.add(kOut, {200_ns, {}}, 0_ns, 100_ns);
  CHECK(end_out(links, 2) == 300_ns);
  // In ns: 50-100 at half the rate, 100-200 alone, 200-300 at half, 300-375 alone, with 25 + 100 + 50 + 75 of data.
  links.add(kIn, {50_ns, {}}, 0_ns, 250_ns);
  links.add(kIn, {0_ns, {}}, 0_ns, 5_ns);
  CHECK(end_in(links, 1) == 375_ns);
  CHECK(end_in(links, 2) == 380_ns);
  links.add(kOut, {350_ns, {}}, 0_ns, 20_ns);  // 350-380 beside the copies in: 15 ns of data; then 5 ns alone
  CHECK(end_out(links, 3) == 385_ns);
}

TEST_CASE("with full rates in both directions every copy takes as long as alone") {
  tests::Random random{7};
  for (int round = 0; round < 200; ++round) {
    Links links = link(1'000'000, 1'000'000, true);
    std::vector<Nanos> ends[2];
    Nanos free[2];
    const auto pick = [&](std::size_t limit) { return Nanos{static_cast<std::int64_t>(random.below(limit))}; };
    for (int i = 0; i < 60; ++i) {
      const std::size_t side = random.below(2);
      Moment after{pick(3'000), {}};
      Nanos begin = after.time;
      if (!ends[0].empty() && random.chance(30)) {
        after.after.out = static_cast<std::uint32_t>(1 + random.below(ends[0].size()));
        begin = std::max(begin, ends[0][after.after.out - 1]);
      }
      if (!ends[1].empty() && random.chance(30)) {
        after.after.in = static_cast<std::uint32_t>(1 + random.below(ends[1].size()));
        begin = std::max(begin, ends[1][after.after.in - 1]);
      }
      const Nanos latency = pick(20), moving = pick(100);
      free[side] = std::max(free[side], begin) + latency + moving;
      ends[side].push_back(free[side]);
      const std::uint32_t number = links.add(static_cast<Direction>(side), after, latency, moving);
      if (random.chance(30)) {
        CHECK(links.resolve({0_ns, side == 0 ? Copies{number, 0} : Copies{0, number}}) == free[side]);
      }
    }
    CHECK(links.drained() == std::max(free[0], free[1]));
  }
}

TEST_CASE("the order of questions changes no answer if no copy is added for a past time") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto run = [seed](bool eager) {
      tests::Random random{seed};
      Links links = link(430'000, 710'000);
      Nanos now;
      for (int i = 0; i < 80; ++i) {
        const auto moving = Nanos{static_cast<std::int64_t>(random.below(500))};
        links.add(random.chance(50) ? kOut : kIn, {now, {}}, 3_ns, moving);
        now += Nanos{static_cast<std::int64_t>(random.below(300))};
        if (eager) links.advance(now);
      }
      return links.drained();
    };
    CHECK(run(true) == run(false));
  }
}

}  // namespace tidepool::links_test
