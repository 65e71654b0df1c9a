#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "simulator/studies/report/run_data.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::difference_test {

using namespace tidepool::literals;
using Json = nlohmann::ordered_json;

namespace {

/// Three ops that read what the one before made. `kept` is never freed; `extra` runs an op more, with 3 MiB of its own.
Trace step(bool kept, bool extra) {
  TraceBuilder build;
  const auto op = [&](const char* name) { return Op{.name = build.text(name), .line = build.text("model.py:8")}; };
  const auto alloc = [&](Bytes size, const char* line) {
    return build.alloc({.size = size, .line = build.text(line)});
  };
  const BufferId weight = build.existing({.size = 4_MiB, .name = build.text("weight")});
  const BufferId first = alloc(1_MiB, "model.py:1");
  build.run(op("first"), {{weight}, {first, Access::kWrite}});
  if (extra) {
    const BufferId own = alloc(3_MiB, "model.py:9");
    build.run(op("extra"), {{first}, {own, Access::kWrite}});
    build.free(own);
  }
  const BufferId second = alloc(2_MiB, "model.py:2");
  build.run(op("second"), {{first}, {second, Access::kWrite}});
  if (!kept) build.free(first);
  const BufferId third = alloc(2_MiB, "model.py:3");
  build.run(op("third"), {{second}, {third, Access::kWrite}});
  build.free(second);
  build.free(third);
  return build.finish();
}

Compared compared(Trace a, Trace b) {
  TraceDiff diff = diff_traces(a, b);
  return {"a.tide", "b.tide", std::move(a), std::move(b), {}, {}, std::move(diff)};
}

Bytes peak(const std::vector<MemoryPoint>& points) { return std::ranges::max(points, {}, &MemoryPoint::sum).sum(); }

Bytes most(const std::vector<MemoryPoint>& points, std::size_t band) {
  return std::ranges::max(points, {}, [&](const MemoryPoint& point) { return point.held[band]; }).held[band];
}

}  // namespace

TEST_CASE("both curves of a comparison have the places of both traces, and the bytes that differ apart") {
  const Compared found = compared(step(false, false), step(true, true));
  REQUIRE(found.diff.places.size() == 4);  // first, extra, second, third
  CHECK((found.diff.places[1].a == ProgramPlace::kNone && found.diff.places[1].b != ProgramPlace::kNone));
  const std::vector<MemoryPoint> a = difference_curve(found, false), b = difference_curve(found, true);
  CHECK(peak(a) == found.a.ideal_peak());
  CHECK(peak(b) == found.b.ideal_peak());
  REQUIRE(found.diff.rows.size() == 2);
  for (std::size_t row = 0; row < 2; ++row) {
    const bool is_new = found.diff.rows[row].change == Difference::kNew;
    CAPTURE(row, is_new);
    CHECK(most(a, row + 1) == (is_new ? 0_MiB : 1_MiB));
    CHECK(most(b, row + 1) == (is_new ? 3_MiB : 1_MiB));
  }
  CHECK(b.back().held[0] == 4_MiB);
  CHECK(b.back().sum() == 5_MiB);  // with the buffer that is kept
  CHECK(b.back().time == Nanos{4});
}

TEST_CASE("differences without a row of their own share the last band") {
  const Compared found = [] {
    TraceBuilder a, b;
    for (int i = 0; i < 9; ++i) {
      b.free(b.alloc({.size = Bytes{i + 1}, .line = b.text("m.py:" + std::to_string(i))}));
      if (i == 0) a.free(a.alloc({.size = 1_B, .line = a.text("m.py:0")}));
    }
    return compared(a.finish(), b.finish());
  }();
  REQUIRE(found.diff.rows.size() > 7);
  DataBlocks blocks;
  const Json json = difference_data(found, blocks);
  REQUIRE(json.at("bands").size() == 7);
  CHECK(json.at("bands")[6] == fmt::format("{} other differences", found.diff.rows.size() - 5));
  for (const Json& row : json.at("rows")) CHECK_FALSE(row.contains("ends"));  // there are no ops to name
  const std::vector<MemoryPoint> points = difference_curve(found, true);
  CHECK(most(points, 6) > 0_B);
  CHECK(peak(points) == 9_B);
}

TEST_CASE("report shows what differs between two traces, with the rows of diff") {
  const ScratchFolder scratch;
  const std::string a = scratch.file("a.jsonl"), b = scratch.file("b.jsonl"), page = scratch.file("r.html");
  std::ofstream{a} << to_jsonl(step(false, false));
  std::ofstream{b} << to_jsonl(step(true, true));
  const ProgramResult made = run_program({"report", a, b, "-o", page}), told = run_program({"diff", a, b, "--json"});
  REQUIRE(made.code == 0);
  const Json diff = Json::parse(told.out);
  CHECK(made.out.starts_with(diff.at("sentence").get<std::string>() + "\n"));
  const std::string html = content_of(page), mark = R"(id="content">)";
  const std::size_t from = html.find(mark) + mark.size();
  const Json shown = Json::parse(html.substr(from, html.find("</script>", from) - from)).at("diff");
  for (const auto& [key, value] : diff.items())
    if (key != "rows") CHECK(shown.at(key) == value);
  REQUIRE(shown.at("rows").size() == diff.at("rows").size());
  for (std::size_t i = 0; i < diff.at("rows").size(); ++i)
    for (const auto& [key, value] : diff.at("rows")[i].items()) CHECK(shown.at("rows")[i].at(key) == value);
  CHECK(run_program({"report", a, b, a, "-o", page}).err ==
        "tidepool: " + b + ": a second trace, after " + a + ", and other inputs; expected the two alone\n");
  CHECK(run_program({"report", a, b, "--policy", "dtr", "-o", page}).err ==
        "tidepool: " + b + ": a second trace, after " + a +
            ": a report of two shows what differs; expected no options of a run\n");
}

}  // namespace tidepool::difference_test
