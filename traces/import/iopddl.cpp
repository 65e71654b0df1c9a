// Problems of the ASPLOS/EuroSys contest on intra-operator parallelism (IOPDDL), which choose one strategy of each node
// so that the memory fits and the cost is least:
//   {"problem": {"name": "A", "nodes": {"intervals": [[0, 4], ...], "costs": [[1, 2], ...], "usages": [[64, 32], ...]},
//    "edges": {...}, "usage_limit": 1000}, "solution": [1, ...]}
// A node lives [lower, upper) and uses the memory of its strategy: the one of "solution", or else the one that uses
// least, so that no choice needs less than the trace. Costs and edges are left out.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/lifetimes.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

class ContestReader {
 public:
  explicit ContestReader(const Input& input) : input_{input} {}

  Trace run() {
    const std::string_view text = input_.bytes();
    object file, problem, nodes;
    if (parser_.parse(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()).get(file) != simdjson::SUCCESS ||
        file["problem"].get(problem) != simdjson::SUCCESS || problem["nodes"].get(nodes) != simdjson::SUCCESS)
      refuse("no \"problem\" with \"nodes\"; expected a problem of the IOPDDL contest as JSON");
    const std::vector<std::vector<std::int64_t>> intervals = rows(nodes, "intervals"), usages = rows(nodes, "usages");
    if (intervals.size() != usages.size())
      refuse("{} intervals and {} usages; expected one of each for a node", intervals.size(), usages.size());
    array solution;
    const bool solved = file["solution"].get(solution) == simdjson::SUCCESS;
    if (solved && solution.size() != intervals.size())
      refuse("\"solution\" has {} strategies; expected one for each of {} nodes", solution.size(), intervals.size());
    std::vector<Lifetime> lives;
    Total sizes;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const std::vector<std::int64_t>& interval = intervals[i];
      if (interval.size() != 2 || interval[0] > interval[1])
        refuse("node {}: its interval is not [lower, upper] with lower <= upper", i);
      if (interval[0] == interval[1] || usages[i].empty()) continue;
      Lifetime life{.id = std::to_string(i), .lower = interval[0], .upper = interval[1]};
      life.size = solved ? usage(usages[i], solution.at(i), i) : *std::ranges::min_element(usages[i]);
      sizes.add(life.size, "usages");
      lives.push_back(std::move(life));
    }
    std::map<std::string, std::string> meta{{"source", "iopddl"},
                                            {"sizes", solved ? "of the strategies of the file's solution"
                                                             : "of the strategy of each node that uses least"}};
    if (std::int64_t limit = 0; problem["usage_limit"].get(limit) == simdjson::SUCCESS)
      meta["usage_limit"] = std::to_string(limit);
    return trace_of(lives, meta);
  }

 private:
  static std::int64_t usage(const std::vector<std::int64_t>& usages, simdjson::simdjson_result<element> strategy,
                            std::size_t node) {
    std::uint64_t index = 0;
    if (strategy.get(index) != simdjson::SUCCESS || index >= usages.size())
      refuse("node {}: its strategy in \"solution\" is not one of its {}", node, usages.size());
    return usages[index];
  }

  static std::vector<std::vector<std::int64_t>> rows(const object& nodes, const char* key) {
    array lists;
    if (nodes[key].get(lists) != simdjson::SUCCESS) refuse("\"{}\" is no list; expected one of lists", key);
    std::vector<std::vector<std::int64_t>> found;
    for (const element each : lists) {
      array list;
      if (each.get(list) != simdjson::SUCCESS) refuse("\"{}\" {} is no list; expected one", key, found.size());
      std::vector<std::int64_t>& row = found.emplace_back();
      for (const element value : list) {
        std::int64_t number = 0;
        if (value.get(number) != simdjson::SUCCESS || number < 0 || number > Total::kMost)
          refuse("\"{}\" {} has {}; expected whole numbers from 0 to {}", key, found.size() - 1,
                 std::string{simdjson::minify(value)}, Total::kMost);
        row.push_back(number);
      }
    }
    return found;
  }

  const Input& input_;
  simdjson::dom::parser parser_;
};

int sniff_iopddl(std::string_view head) {
  const bool named = head.starts_with('{') && head.find("\"problem\"") != std::string_view::npos;
  return named && head.find("\"intervals\"") != std::string_view::npos ? 95 : 0;
}

const RegisterImporter kIopddl{{"iopddl",
                                "problems of the IOPDDL contest, with or without a solution (JSON)",
                                {".json"},
                                sniff_iopddl,
                                read_iopddl}};

}  // namespace

Trace read_iopddl(const Input& input) {
  return naming(input.path(), [&] { return ContestReader{input}.run(); });
}

}  // namespace tidepool
