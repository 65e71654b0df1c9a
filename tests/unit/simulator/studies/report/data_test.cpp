#include <zlib.h>

#include <nlohmann/json.hpp>

#include "simulator/studies/report/data_blocks.hpp"
#include "simulator/studies/report/page.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"

namespace tidepool::data_test {

using Json = nlohmann::ordered_json;

namespace {

/// The decoded bytes of a block, as in a browser.
std::string block(const std::string& html, std::size_t number) {
  const std::string tag = "id=\"block-" + std::to_string(number) + "\">";
  const std::size_t begin = html.find(tag) + tag.size(), end = html.find('<', begin);
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : html.substr(begin, end - begin)) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  std::string raw(1 << 20, '\0');
  uLongf size = raw.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                     bytes.size()) == Z_OK);
  raw.resize(size);
  return raw;
}

std::vector<std::int64_t> column(const std::string& raw, std::size_t at, std::size_t rows, std::size_t width) {
  std::vector<std::int64_t> values;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t coded = 0;
    for (std::size_t plane = 0; plane < width; ++plane)
      coded |= std::uint64_t{static_cast<unsigned char>(raw[at + plane * rows + i])} << (8 * plane);
    sum += static_cast<std::int64_t>(coded >> 1) ^ -static_cast<std::int64_t>(coded & 1);
    values.push_back(sum);
  }
  return values;
}

}  // namespace

TEST_CASE("a table of a report is read back unchanged, and takes no more bytes than its numbers need") {
  const std::vector<std::int64_t> wide{0, (std::int64_t{1} << 53) - 1, -5, 7, 0}, narrow{1, 2, 3, 2, 1};
  DataBlocks blocks;
  CHECK(blocks.add_text("names")["block"] == 0);
  const Json table = blocks.add_table({{"wide", wide}, {"narrow", narrow}});
  CHECK(block(blocks.html(), 0) == "names");
  CHECK(table.dump() == R"({"block":1,"rows":5,"columns":[["wide",7],["narrow",1]]})");
  const std::string raw = block(blocks.html(), 1);
  CHECK(raw.size() == 5 * 8);
  CHECK(column(raw, 0, 5, 7) == wide);
  CHECK(column(raw, 5 * 7, 5, 1) == narrow);
  const Json empty = blocks.add_table({{"none", {}}});
  CHECK(empty["rows"] == 0);
  CHECK(block(blocks.html(), 2).empty());
}

namespace {

/// The JSON object of a report's page.
Json content_of(const ReportContent& content) {
  const std::string page = report_page(content);
  const std::size_t begin = page.find("id=\"content\">") + 13;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("no data of a report can end its script element") {
  const NamedTrace trace{"</script><b>.tide", tests::chain_trace(3)};
  ReportContent content{
      .command = "tidepool report '</script>'", .trace = &trace, .ideal_peak = {}, .runs = {}, .frontiers = {}};
  const std::string page = report_page(content);
  CHECK(page == report_page(content));
  const Json json = content_of(content);
  CHECK(json["trace"]["name"] == "</script><b>.tide");
  CHECK(json["command"] == "tidepool report '</script>'");
  CHECK(page.find("http://") == page.find("http://www.w3.org"));  // SVG's namespace, which is not loaded
  CHECK(page.find("https://") == std::string::npos);
  CHECK(page.find("src=") == std::string::npos);
}

TEST_CASE("a row's pool and policies are written with the options of each") {
  Row row(result_columns().size());
  const auto names = [&](const char* pool, const char* policy, const char* options) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (result_columns()[i].name == "pool") row[i] = std::string{pool};
      if (result_columns()[i].name == "policy") row[i] = std::string{policy};
      if (result_columns()[i].name == "options") row[i] = std::string{options};
    }
    const WrittenNames written = written_names(row);
    return written.pool + " | " + written.policy;
  };
  CHECK(names("best-fit", "none", "") == "best-fit | none");
  CHECK(names("pytorch", "autoswap+coop", "pytorch(roundup=[256:1,>:4]) coop(partition=off)") ==
        "pytorch(roundup=[256:1,>:4]) | autoswap+coop(partition=off)");
  CHECK(names("best-fit", "tide", "tide(with=swap,effort=1)") == "best-fit | tide(with=swap,effort=1)");
  CHECK(names("best-fit", "dtr+dtr-eq", "dtr-eq(a=b c)") == "best-fit | dtr+dtr-eq(a=b c)");
}

TEST_CASE("runs with different overhead limits are in different frontiers") {
  const NamedTrace trace{"t", tests::chain_trace(3)};
  std::vector<Row> rows;
  for (const double limit : {10.0, 2.0}) {
    const RunSpec spec{.capacity = 1_GiB, .overhead_limit = limit};
    Result result;
    result.outcome = limit > 5 ? Outcome::kOk : Outcome::kTimeLimit;
    rows.push_back(make_row(trace, 1_KiB, spec, result, {}));
  }
  const std::vector<Frontier> frontiers = frontiers_of(rows);
  REQUIRE(frontiers.size() == 2);
  CHECK(frontiers[0].lines.at(0).cells.at(0).outcome == Outcome::kOk);
  CHECK(frontiers[1].lines.at(0).cells.at(0).outcome == Outcome::kTimeLimit);
  CHECK(frontiers[0].setting == "overhead limit 10");
  CHECK(frontiers[1].setting == "overhead limit 2");
  CHECK(frontiers_of(std::span{rows}.first(1)).at(0).setting.empty());
}

TEST_CASE("frontiers of two traces with the same file name have the paths of the traces") {
  std::vector<Row> rows;
  for (const auto& [name, ops] :
       {std::pair{"/a/step.tide", std::size_t{3}}, std::pair{"/b/step.tide", std::size_t{4}}}) {
    const NamedTrace trace{name, tests::chain_trace(ops)};
    for (const Bytes capacity : {1_GiB, 2_GiB}) rows.push_back(make_row(trace, 1_KiB, {.capacity = capacity}, {}, {}));
  }
  const std::vector<Frontier> frontiers = frontiers_of(rows);
  REQUIRE(frontiers.size() == 2);
  CHECK(frontiers[0].trace == "/a/step.tide");
  CHECK(frontiers[1].trace == "/b/step.tide");
  CHECK(frontiers_of(std::span{rows}.first(2)).at(0).trace == "step.tide");
}

TEST_CASE("a report names the pool of each best run") {
  Frontier frontier{"t", "m", 1_MiB, 1_ms, {}, {}};
  arrange(std::vector<Point>{{"p", "first", true, 1_MiB, Outcome::kOk, 0.5},
                             {"p", "first", true, 2_MiB, Outcome::kOk, 0.1},
                             {"p", "second", true, 1_MiB, Outcome::kOk, 0.2}},
          frontier);
  const Json best = content_of({.command = "",
                                .trace = nullptr,
                                .ideal_peak = {},
                                .runs = {},
                                .frontiers = {frontier}})["frontiers"][0]["best_pools"][0];
  CHECK(best["pool"] == "second, first");
  CHECK(best["pools"] == Json{"second", "first"});
}

}  // namespace tidepool::data_test
