#include "traces/import/recompute_graph.hpp"

#include <string>

#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::recompute_graph_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::program;

namespace {

// b reads a, loss reads b, c reads the loss and a. If all values are kept, in KiB: 5 fixed + 10 + 20 while b runs,
// 5 + 10 + 20 + 1 while the loss runs, 5 + 10 + 1 + 30 = 46 while c runs.
const std::string kOps = R"({"op":"a","phase":"fwd","cost":3,"mem_kib":10,"inputs":[]},
{"op":"b","phase":"fwd","cost":2,"mem_kib":20,"inputs":[0]},
{"op":"loss","phase":"loss","cost":0,"mem_kib":1,"inputs":[1]},
{"op":"c","phase":"bwd","cost":4,"mem_kib":30,"inputs":[0,2]})";

std::string checkmate(const std::string& budgets, const std::string& ops = kOps) {
  return R"({"name":"tiny","fixed_kib":5,"ops":[)" + ops + R"(],"budgets":[)" + budgets + "]}";
}

/// A schedule in which a is dropped after b and recomputed before c. The peak is the same, since c reads a.
std::string stored(int cost, int peak, const std::string& recompute = R"({"3":[0]})") {
  return R"({"budget_gib":1,"budget_kib_minus_fixed":41,"status":"open","lower_bound":9,"cover_bound_any_copies":null,)"
         R"("solution":{"cost":)" +
         std::to_string(cost) + R"(,"plain_peak_kib":)" + std::to_string(peak) + R"(,"recompute":)" + recompute + "}}";
}

std::vector<ReplayedSchedule> audited(const std::string& text) {
  return audit_schedules(parse_recompute_graph(Input{"t.json", text}, GraphForm::kCheckmate));
}

}  // namespace

TEST_CASE("a graph of Checkmate becomes a step whose values end with their last readers") {
  const Trace trace = read_checkmate(Input{"t.json", checkmate("")});
  CHECK(program(trace) == std::vector<std::string>{"alloc 1", "run a", "alloc 2", "run b", "alloc 3", "run loss",
                                                   "free 2", "alloc 4", "run c", "free 1", "free 3", "free 4"});
  CHECK(trace.ideal_peak() == 46_KiB);
  CHECK(trace.ops()[1].duration == 20_us);
  CHECK(trace.ops()[2].phase == Phase::kForward);
  CHECK(trace.ops()[3].phase == Phase::kBackward);
  CHECK(trace.buffers()[0].size == 5_KiB);
  CHECK(trace.outputs().size() == 1);
}

TEST_CASE("a graph of Moccasin has costs in us, memory in bytes and nothing fixed") {
  const std::string text = R"({"ops":[{"name":0,"cost":2,"mem":100,"inputs":[],"backward":null},
{"name":"g","cost":3,"mem":50,"inputs":[0],"backward":true}],"budgets":[]})";
  const Trace trace = read_moccasin(Input{"t.json", text});
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run 0", "alloc 1", "run g", "free 0", "free 1"});
  CHECK(trace.ideal_peak() == 150_B);
  CHECK(trace.ops()[1].duration == 3_us);
  CHECK(trace.ops()[1].phase == Phase::kBackward);
  CHECK(find_importer(Input{"t.json", text}, "auto").name == "moccasin");
  CHECK(find_importer(Input{"t.json", checkmate("")}, "auto").name == "checkmate");
}

TEST_CASE("an op without a phase begins none") {
  const Trace trace = read_checkmate(Input{"t.json", checkmate("", R"({"op":"a","cost":1,"mem_kib":1,"inputs":[]},
{"op":"b","phase":"bwd","cost":1,"mem_kib":1,"inputs":[]},{"op":"c","cost":1,"mem_kib":1,"inputs":[]},
{"op":"d","phase":"bwd","cost":1,"mem_kib":1,"inputs":[]},
{"op":"e","phase":"fwd","cost":1,"mem_kib":1,"inputs":[]})")});
  std::vector<std::string> marks;
  for (const Mark& mark : trace.data().marks) marks.emplace_back(trace.text(mark.name));
  CHECK(marks == std::vector<std::string>{"backward", "forward"});
  CHECK(trace.ops()[2].phase == Phase::kUnknown);
}

TEST_CASE("a stored schedule matches if its cost and its peak are those of its replay") {
  // a runs twice, so the cost is 3 + 2 + 0 + 3 + 4. While c runs, 5 fixed + 10 + 1 + 30 KiB are live.
  const std::vector<ReplayedSchedule> good = audited(checkmate(stored(12, 41)));
  REQUIRE(good.size() == 1);
  CHECK(good[0].matches());
  CHECK(good[0].cost == 120_us);
  CHECK(good[0].peak == 46_KiB);
  CHECK_FALSE(audited(checkmate(stored(11, 41)))[0].matches());
  CHECK_FALSE(audited(checkmate(stored(12, 40)))[0].matches());
}

TEST_CASE("a schedule out of order, or beyond its budget, is refused") {
  CHECK(
      audited(checkmate(stored(12, 41, R"({"3":[1,0]})")))[0].refused ==
      "run op 0 before op 3: op 1 ran again before it in this stage; under the assumptions of checkmate ops run again "
      "once in a stage at most, in the order of the program");
  std::string tight = stored(12, 41);
  tight.replace(tight.find("\"budget_kib_minus_fixed\":41"), 27, "\"budget_kib_minus_fixed\":40");
  CHECK(audited(checkmate(tight))[0].refused == "alloc version 4 before op 3: 46 KiB exceed the capacity");
}

TEST_CASE("under Moccasin's assumptions an op runs at most twice") {
  const std::string text =
      R"({"ops":[{"name":"a","cost":1,"mem":1,"inputs":[]},{"name":"b","cost":1,"mem":1,"inputs":[0]},
{"name":"c","cost":1,"mem":1,"inputs":[0]},{"name":"d","cost":1,"mem":1,"inputs":[0]}],"budgets":[]})";
  RecomputeGraph graph = parse_recompute_graph(Input{"t.json", text}, GraphForm::kMoccasin);
  graph.budgets.push_back({.name = "1x",
                           .capacity = 9_B,
                           .status = "open",
                           .schedule = GraphSchedule{{{}, {}, {0}, {0}}, 6_us, 2_B},
                           .least = {},
                           .least_any = {}});
  CHECK(audit_schedules(graph)[0].refused ==
        "run op 0 before op 3: it has run 2 times; under the assumptions of moccasin ops run 2 times at most");
}

TEST_CASE("a wrong graph is refused, and the message names the wrong op or budget") {
  const auto says = [](const std::string& text) { return complaint(read_checkmate, text); };
  CHECK(says("[]") == "t.log: no JSON object; expected a graph with \"ops\" and \"budgets\"");
  CHECK(says("{}") == "t.log: \"fixed_kib\" is missing; expected a whole number");
  CHECK(says(checkmate("", "")) == "t.log: \"ops\" is empty; expected at least one op");
  CHECK(says(checkmate("", R"({"op":"a","mem_kib":1,"inputs":[]})")) ==
        "t.log: op 0: \"cost\" is missing; expected a whole number");
  CHECK(says(checkmate("", R"({"op":"a","cost":1.5,"mem_kib":1,"inputs":[]})")) ==
        "t.log: op 0: \"cost\" is no whole number; expected one");
  CHECK(says(checkmate("", R"({"op":"a","cost":-1,"mem_kib":1,"inputs":[]})")) ==
        "t.log: op 0: \"cost\" is -1; expected a number from 0 to 2305843009213693952");
  CHECK(says(checkmate("", R"({"op":"a","cost":1,"mem_kib":1,"inputs":[0]})")) ==
        "t.log: op 0: reads op 0, which does not run before it; expected ops in the order of their first runs");
  CHECK(says(checkmate(stored(12, 41, R"({"4":[0]})"))) ==
        "t.log: budget 0: \"recompute\" has 4 as an op or a stage; expected 0 to 3");
  CHECK(says(checkmate(stored(12, 41, R"({"3":[5]})"))) ==
        "t.log: budget 0: \"recompute\" has 5 as an op or a stage; expected 0 to 3");
  CHECK(says(checkmate(stored(12, 41, R"({"x":[0]})"))) ==
        "t.log: budget 0: \"recompute\" has 'x' as an op or a stage; expected 0 to 3");
  CHECK(says(checkmate(R"({"budget_gib":"9"})")) == "t.log: budget 0: \"budget_gib\" is no number; expected a number");
  CHECK(says(checkmate("{}")) == "t.log: budget 0: \"budget_gib\" is missing; expected a number");
  CHECK(says(checkmate(stored(12, 41, "[[0]]"))) == "t.log: budget 0: \"recompute\" is no object; expected one");
  CHECK(says(R"({"fixed_kib":5,"ops":[)" + kOps + R"(],"budgets":3})") ==
        "t.log: \"budgets\" is no list; expected a list");
}

}  // namespace tidepool::recompute_graph_test
