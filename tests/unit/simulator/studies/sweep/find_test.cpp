#include <cmath>
#include <map>

#include "simulator/studies/sweep/least_capacity.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::find_test {

namespace {

/// Searches among `size` places. The objective holds at the places whose bit is set.
Bisection searched(unsigned bits, std::size_t size) {
  Bisection search{size};
  for (std::vector<std::size_t> wanted = search.wanted(); !wanted.empty(); wanted = search.wanted())
    for (const std::size_t place : wanted) search.tell(place, (bits >> place & 1U) != 0);
  return search;
}

std::string refusal(const std::string& text) {
  try {
    parse_objective(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Row row_of(const std::string& outcome, Value overhead_ratio, Value gap) {
  Row row(result_columns().size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (result_columns()[i].name == "outcome") row[i] = outcome;
    if (result_columns()[i].name == "overhead_ratio") row[i] = overhead_ratio;
    if (result_columns()[i].name == "gap") row[i] = gap;
  }
  return row;
}

}  // namespace

TEST_CASE("bisection finds the first place at which a monotone objective holds, with few trials") {
  for (std::size_t size : {1U, 2U, 3U, 10U, 20U, 31U})
    for (std::size_t least = 0; least <= size; ++least) {
      INFO(size << " places, the first that holds is " << least);
      const unsigned all = (1U << size) - 1;
      const Bisection search = searched(all & ~((1U << least) - 1), size);
      CHECK(search.least() == (least < size ? std::optional{least} : std::nullopt));
      CHECK(search.exceptions().empty());
      CHECK(static_cast<double>(search.trials()) <= std::log2(static_cast<double>(size)) + 5);
    }
  CHECK_FALSE(searched(0, 0).least());
}

TEST_CASE("bisection ends at its answer for any function, and reports values that are not monotone") {
  constexpr std::size_t kSize = 11;
  for (unsigned bits = 0; bits < 1U << kSize; ++bits) {
    const Bisection search = searched(bits, kSize);
    const auto holds = [&](std::size_t place) { return (bits >> place & 1U) != 0; };
    const std::optional<std::size_t> least = search.least();
    REQUIRE(least.has_value() == holds(kSize - 1));
    if (!least) continue;
    REQUIRE(holds(*least));
    for (std::size_t below = 1; below <= 2 && below <= *least; ++below) REQUIRE_FALSE(holds(*least - below));
    if (*least + 1 < kSize && !holds(*least + 1)) REQUIRE(search.exceptions().at(0) == *least + 1);
    for (const std::size_t place : search.exceptions()) REQUIRE_FALSE(holds(place));
  }
}

TEST_CASE("objectives are parsed, and hold for the right values") {
  const Objective overhead = parse_objective("overhead<1%"), gap = parse_objective("gap<=2.5%"),
                  outcome = parse_objective("outcome=out_of_memory");
  CHECK(overhead.holds(row_of("ok", 1.0099, {})));
  CHECK_FALSE(overhead.holds(row_of("ok", 1.0101, {})));
  CHECK_FALSE(overhead.holds(row_of("time_limit", 1.0, {})));
  CHECK_FALSE(overhead.holds(row_of("error", {}, {})));
  CHECK(gap.holds(row_of("ok", 3.0, 0.025)));
  CHECK_FALSE(gap.holds(row_of("ok", 1.0, {})));
  CHECK(parse_objective("overhead<=0%").holds(row_of("ok", 1.0, {})));
  CHECK_FALSE(parse_objective("overhead<0%").holds(row_of("ok", 1.0, {})));
  CHECK(outcome.holds(row_of("out_of_memory", {}, {})));
  CHECK_FALSE(outcome.holds(row_of("ok", {}, {})));
  for (const char* text :
       {"", "overhead<1", "overhead<%", "overhead>1%", "peak<1%", "outcome=good", "outcome", "gap<-1%", "overhead<1%%",
        "overhead<nan%", "overhead<inf%", "overhead<1e999%", "<1%", "overhead< 1%"})
    CHECK(refusal(text) ==
          "'" + std::string{text} + "' is no objective; expected overhead<1%, gap<2% (or <=) or outcome=ok");
}

TEST_CASE("find gives the result of a sweep over every capacity, from few runs") {
  std::vector<SweepPart> parts;
  for (const std::uint64_t seed : {std::uint64_t{3}, std::uint64_t{4}}) {
    NamedTrace trace{"random-" + std::to_string(seed), tests::random_trace(seed, 120)};
    Grid grid{{.pool = "best-fit,ideal", .policy = "none,lru-swap,lru", .capacity = "0.3x..1.5x/61"}, trace.trace};
    parts.push_back({std::move(trace), std::move(grid)});
  }
  const Objective objective = parse_objective("overhead<20%");
  Database found_in{":memory:"}, threaded{":memory:"}, every{":memory:"};
  SweepProgress progress, again;
  const std::vector<Answer> answers = find_least(parts, objective, found_in, {}, progress);
  CHECK(answers.size() == 12);
  CHECK(progress.done == static_cast<std::size_t>(found_in.runs()));
  CHECK(progress.done < 12 * 12);
  sweep(parts, every, {.threads = 2});
  int monotone_answers = 0;
  for (const Answer& answer : answers) {
    const Row row = *every.find(answer.key);
    INFO(text_at(row, "trace") << " " << text_at(row, "policy") << " " << text_at(row, "pool"));
    CHECK(answer.found == objective.holds(row));
    std::map<std::int64_t, bool> holds;  // by capacity, for runs that differ only in it
    every.each([&](const KeyedRow& other) {
      for (const char* same : {"trace", "policy", "pool"})
        if (at(other.row, same) != at(row, same)) return;
      holds[std::get<std::int64_t>(at(other.row, "capacity_bytes"))] = objective.holds(other.row);
    });
    bool monotone = true, below = false;
    for (const auto& [capacity, held] : holds) {
      monotone = monotone && (held || !below);
      below = below || held;
    }
    std::int64_t first = 0;
    for (const auto& [capacity, held] : holds)
      if (held && first == 0) first = capacity;
    if (monotone && answer.found) CHECK(first == std::get<std::int64_t>(at(row, "capacity_bytes")));
    monotone_answers += monotone && answer.found;
  }
  CHECK(monotone_answers >= 6);
  const std::vector<Answer> same = find_least(parts, objective, threaded, {.threads = 3}, again);
  CHECK(threaded.runs() == found_in.runs());
  REQUIRE(same.size() == answers.size());
  for (std::size_t i = 0; i < same.size(); ++i) CHECK(same[i].key == answers[i].key);
  SweepProgress third;
  find_least(parts, objective, found_in, {}, third);
  CHECK(third.done == 0);
  std::size_t sharded = 0;
  for (int index = 1; index <= 3; ++index) {
    Database shard{":memory:"};
    SweepProgress ignored;
    sharded += find_least(parts, objective, shard, {.shard = {index, 3}}, ignored).size();
  }
  CHECK(sharded == answers.size());
}

}  // namespace tidepool::find_test
