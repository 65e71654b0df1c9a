#include "simulator/studies/sweep/shard.hpp"

#include <fmt/format.h>

#include "simulator/studies/sweep/merge.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/sweep/sweep_request.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "tests/refusal.hpp"
#include "traces/base/error.hpp"

namespace tidepool::shard_test {

using tidepool::tests::refusal;

namespace {

std::vector<SweepPart> parts() {
  std::vector<SweepPart> all;
  NamedTrace trace{"random", tests::random_trace(3, 100)};
  Grid grid{{.pool = "best-fit,ideal", .policy = "none,lru,lru-swap,random", .capacity = "0.3x..1.0x/8"}, trace.trace};
  all.push_back({std::move(trace), std::move(grid)});
  return all;
}

constexpr std::size_t kRuns = 2 * 4 * 8;

std::vector<KeyedRow> rows(const Database& database) {
  std::vector<KeyedRow> all;
  database.each([&](const KeyedRow& row) { all.push_back(row); });
  return all;
}

bool identical(const std::vector<KeyedRow>& a, const std::vector<KeyedRow>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const KeyedRow& one, const KeyedRow& other) {
    return one.key == other.key && moved_results(one.row, other.row).empty();
  });
}

}  // namespace

TEST_CASE("shards give the whole sweep when they are merged, in any order") {
  const ScratchFolder scratch;
  const std::vector<SweepPart> all = parts();
  Database whole{":memory:"};
  sweep(all, whole, {});
  std::vector<std::string> files;
  std::size_t done = 0;
  for (int i = 1; i <= 3; ++i) {
    files.push_back(scratch.file(std::to_string(i) + ".sqlite"));
    Database shard{files.back()};
    const SweepProgress end = sweep(all, shard, {.shard = {i, 3}});
    CHECK(end.runs == end.done);
    CHECK(end.done > kRuns / 6);
    done += end.done;
  }
  CHECK(done == kRuns);
  Database merged{":memory:"};
  CHECK(merge(files, merged).added == kRuns);
  CHECK(identical(rows(merged), rows(whole)));
  std::reverse(files.begin(), files.end());
  Database reversed{":memory:"};
  merge(files, reversed);
  const MergeCount again = merge(files, reversed);
  CHECK(again.added == 0);
  CHECK(again.known == kRuns);
  CHECK(identical(rows(reversed), rows(whole)));
}

TEST_CASE("workers that did the same run must agree, and otherwise the error names their files") {
  const ScratchFolder scratch;
  const std::vector<SweepPart> all = parts();
  const std::string a = scratch.file("a.sqlite"), b = scratch.file("b.sqlite");
  std::string key;
  {
    Database one{a}, two{b};
    sweep(all, one, {});
    const KeyedRow first = rows(one)[0];
    key = first.key;
    KeyedRow changed = first;
    for (std::size_t i = 0; i < changed.row.size(); ++i)
      if (result_columns()[i].name == "eviction_count") changed.row[i] = std::int64_t{-5};
    two.insert(std::vector<KeyedRow>{changed});
  }
  Database into{":memory:"};
  const std::string why = refusal([&] { merge(std::vector{a, b}, into); });
  CHECK(why.starts_with(b + ": run " + key + " ("));
  CHECK(why.find("eviction_count is -5, but ") != std::string::npos);
  CHECK(why.ends_with(" in " + a +
                      "; expected the same from every worker (is a policy not deterministic, or are these two programs "
                      "of one version?)"));
  CHECK(into.runs() == kRuns);
}

TEST_CASE("runs of two versions are merged only on request") {
  const ScratchFolder scratch;
  const std::vector<SweepPart> all = parts();
  const std::string a = scratch.file("a.sqlite"), b = scratch.file("b.sqlite");
  {
    Database one{a}, two{b};
    sweep(all, one, {});
    for (KeyedRow row : rows(one)) {
      for (std::size_t i = 0; i < row.row.size(); ++i)
        if (result_columns()[i].name == "version") row.row[i] = std::string{"0.0.9"};
      row.key[0] = row.key[0] == 'x' ? 'y' : 'x';
      two.insert(std::vector{row});
    }
  }
  Database into{":memory:"};
  CHECK(refusal([&] {
          merge(std::vector{a, b}, into);
        }) == b + fmt::format(": runs of tidepool 0.0.9, but {} in {}; expected one version, or --any-version",
                              build_version(), a));
  CHECK(into.runs() == 0);
  CHECK(merge(std::vector{a, b}, into, true).added == 2 * kRuns);
}

TEST_CASE("a text that is no shard is refused") {
  for (const char* text : {"0/0", "4/3", "0/3", "-1/3", "1/", "/2", "1", "", "1/2/3", "a/b", "1/100001", "1 /2"}) {
    INFO(text);
    CHECK(
        refusal([&] { parse_shard(text); }) ==
        "'" + std::string{text} +
            "' is not a shard; expected INDEX/COUNT, whole numbers with INDEX from 1 to COUNT and COUNT up to 100000, "
            "as in 2/8");
  }
  const Shard shard = parse_shard("2/8");
  CHECK(shard.index == 2);
  CHECK(to_text(shard) == "2/8");
  CHECK(shard.has("0000000000000009ffffffffffffffff"));
  CHECK_FALSE(shard.has("000000000000000a0000000000000000"));
}

TEST_CASE("a sweep's request is read back from its text, and the requests of all its shards are joined to one") {
  SweepOrder order{.traces = {"a \"b\".tide", "c"},
                   .hashes = {"1", "2"},
                   .machines = {"3"},
                   .files = {"4", "5"},
                   .grid = {.pool = "p", .policy = "q(x=1)", .capacity = "0.3x", .count_search = true},
                   .shard = {2, 3},
                   .find = "overhead<1%",
                   .folder = "/somewhere"};
  CHECK(to_json(parse_order(to_json(order))) == to_json(order));
  std::vector<SweepOrder> shards(3, order);
  for (int i = 0; i < 3; ++i) shards[static_cast<std::size_t>(i)].shard.index = i + 1;
  const std::vector<SweepOrder> one = joined(shards);
  REQUIRE(one.size() == 1);
  CHECK(one[0].shard.count == 1);
  shards.pop_back();
  CHECK(joined(shards).size() == 2);
  CHECK(refusal([] { parse_order("{}"); }).starts_with("not a sweep's request: "));
  CHECK(refusal([] { parse_order("[1,"); }).starts_with("not a sweep's request: "));
}

}  // namespace tidepool::shard_test
