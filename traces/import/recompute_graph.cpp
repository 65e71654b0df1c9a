#include "traces/import/recompute_graph.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::int64_t kKiB = 1024;

/// One unit of cost in ns.
std::int64_t cost_unit(GraphForm form) { return form == GraphForm::kCheckmate ? 10'000 : 1'000; }

class GraphReader {
 public:
  GraphReader(const Input& input, GraphForm form) : input_{input}, checkmate_{form == GraphForm::kCheckmate} {
    graph_.form = form;
  }

  RecomputeGraph run() try {
    const std::string_view text = input_.bytes();
    object file;
    if (parser_.parse(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()).get(file) != simdjson::SUCCESS)
      refuse("no JSON object; expected a graph with \"ops\" and \"budgets\"");
    if (checkmate_) graph_.fixed = bytes(whole(file, "fixed_kib"), "fixed_kib");
    read_ops(list(file, "ops"));
    if (is_given(file, "budgets")) read_budgets(list(file, "budgets"));
    return std::move(graph_);
  } catch (const InputError& error) {
    throw error.at(input_.path() + where_);
  }

 private:
  /// Whether a member is neither absent nor null.
  static bool is_given(const object& record, const char* key) {
    element value;
    return record[key].get(value) == simdjson::SUCCESS && !value.is_null();
  }
  static object members(const object& record, const char* key) {
    object found;
    if (record[key].get(found) != simdjson::SUCCESS) refuse("\"{}\" is no object; expected one", key);
    return found;
  }
  static array list(const object& record, const char* key) {
    array found;
    if (record[key].get(found) != simdjson::SUCCESS)
      refuse("\"{}\" is {}; expected a list", key, is_given(record, key) ? "no list" : "missing");
    return found;
  }

  /// A whole number of at least 0, at most Total::kMost.
  static std::int64_t whole(const element& value, const char* key) {
    std::int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) refuse("\"{}\" is no whole number; expected one", key);
    if (number < 0 || number > Total::kMost)
      refuse("\"{}\" is {}; expected a number from 0 to {}", key, number, Total::kMost);
    return number;
  }
  static std::int64_t whole(const object& record, const char* key) {
    element value;
    if (record[key].get(value) != simdjson::SUCCESS) refuse("\"{}\" is missing; expected a whole number", key);
    return whole(value, key);
  }
  /// A whole number; nothing if it is absent or null.
  static std::optional<std::int64_t> maybe_whole(const object& record, const char* key) {
    element value;
    if (record[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return whole(value, key);
  }

  std::int64_t scaled(std::int64_t number, std::int64_t unit, const char* key) const {
    if (number > Total::kMost / unit) refuse("\"{}\" is {}; expected at most {}", key, number, Total::kMost / unit);
    return number * unit;
  }
  Nanos time(std::int64_t number, const char* key) const { return Nanos{scaled(number, cost_unit(graph_.form), key)}; }
  Bytes bytes(std::int64_t number, const char* key) const { return Bytes{scaled(number, checkmate_ ? kKiB : 1, key)}; }

  void read_ops(const array& ops) {
    Total sizes, times;
    sizes.add(graph_.fixed.count(), "sizes");
    for (const element& each : ops) {
      where_ = fmt::format(": op {}", graph_.ops.size());
      object record;
      if (each.get(record) != simdjson::SUCCESS) refuse("is no object; expected one");
      GraphOp op;
      op.name = name_of(record[checkmate_ ? "op" : "name"]);
      op.phase = phase_of(record);
      op.cost = time(whole(record, "cost"), "cost");
      op.output = bytes(whole(record, checkmate_ ? "mem_kib" : "mem"), checkmate_ ? "mem_kib" : "mem");
      sizes.add(op.output.count(), "sizes");
      times.add(op.cost.count(), "costs");
      for (const element& input : list(record, "inputs")) {
        const std::int64_t from = whole(input, "inputs");
        if (from >= static_cast<std::int64_t>(graph_.ops.size()))
          refuse("reads op {}, which does not run before it; expected ops in the order of their first runs", from);
        op.inputs.push_back(static_cast<std::uint32_t>(from));
      }
      std::sort(op.inputs.begin(), op.inputs.end());
      op.inputs.erase(std::unique(op.inputs.begin(), op.inputs.end()), op.inputs.end());
      graph_.ops.push_back(std::move(op));
    }
    where_.clear();
    if (graph_.ops.empty()) refuse("\"ops\" is empty; expected at least one op");
  }

  static std::string name_of(const simdjson::simdjson_result<element>& value) {
    std::string_view text;
    std::int64_t number = 0;
    if (value.get(text) == simdjson::SUCCESS) return std::string{text};
    if (value.get(number) == simdjson::SUCCESS) return fmt::format("{}", number);
    return "op";
  }

  /// The phase of an op; kUnknown if the file does not say. The loss belongs to the forward phase.
  Phase phase_of(const object& record) const {
    std::string_view text;
    bool backward = false;
    if (checkmate_ && record["phase"].get(text) == simdjson::SUCCESS)
      return text == "bwd" ? Phase::kBackward : Phase::kForward;
    if (!checkmate_ && record["backward"].get(backward) == simdjson::SUCCESS)
      return backward ? Phase::kBackward : Phase::kForward;
    return Phase::kUnknown;
  }

  void read_budgets(const array& budgets) {
    for (const element& each : budgets) {
      where_ = fmt::format(": budget {}", graph_.budgets.size());
      object record;
      if (each.get(record) != simdjson::SUCCESS) refuse("is no object; expected one");
      GraphBudget budget;
      if (std::string_view status; record["status"].get(status) == simdjson::SUCCESS) budget.status = status;
      checkmate_ ? read_checkmate(record, budget) : read_moccasin(record, budget);
      graph_.budgets.push_back(std::move(budget));
    }
    where_.clear();
  }

  static double fraction(const object& record, const char* key) {
    double number = 0;
    if (record[key].get(number) != simdjson::SUCCESS)
      refuse("\"{}\" is {}; expected a number", key, is_given(record, key) ? "no number" : "missing");
    return number;
  }

  void read_checkmate(const object& record, GraphBudget& budget) const {
    budget.name = fmt::format("{}GiB", fraction(record, "budget_gib"));
    budget.capacity = bytes(whole(record, "budget_kib_minus_fixed"), "budget_kib_minus_fixed") + graph_.fixed;
    if (const auto least = maybe_whole(record, "lower_bound")) budget.least = time(*least, "lower_bound");
    if (const auto least = maybe_whole(record, "cover_bound_any_copies"))
      budget.least_any = time(*least, "cover_bound_any_copies");
    if (!is_given(record, "solution")) return;
    const object solution = members(record, "solution");
    if (!is_given(solution, "recompute")) return;
    const object again = members(solution, "recompute");
    GraphSchedule schedule;
    schedule.cost = time(whole(solution, "cost"), "cost");
    schedule.peak = bytes(whole(solution, "plain_peak_kib"), "plain_peak_kib") + graph_.fixed;
    schedule.again.resize(graph_.ops.size());
    for (const auto& [stage, ops] : again) {
      std::vector<std::uint32_t>& before = schedule.again[position(stage)];
      array runs;
      if (ops.get(runs) != simdjson::SUCCESS) refuse("\"recompute\" of stage {} is no list; expected one", stage);
      for (const element& op : runs) before.push_back(position(whole(op, "recompute")));
    }
    budget.schedule = std::move(schedule);
  }

  void read_moccasin(const object& record, GraphBudget& budget) const {
    budget.name = fmt::format("{}x", fraction(record, "fraction"));
    budget.capacity = bytes(whole(record, "budget"), "budget");
    const std::int64_t base = base_cost();
    const auto least = [&](const char* key) -> std::optional<Nanos> {
      if (const auto extra = maybe_whole(record, key)) return Nanos{base} + time(*extra, key);
      return std::nullopt;
    };
    budget.least = least("lower_bound_2_copies");
    budget.least_any = least("cover_bound_any_copies");
    if (!is_given(record, "recompute")) return;
    const object runs = members(record, "recompute");
    GraphSchedule schedule;
    schedule.cost = Nanos{base} + time(whole(record, "extra_cost"), "extra_cost");
    schedule.peak = bytes(whole(record, "peak"), "peak");
    schedule.again.resize(graph_.ops.size());
    for (const auto& [op, stage] : runs) schedule.again[position(whole(stage, "recompute"))].push_back(position(op));
    for (std::vector<std::uint32_t>& ops : schedule.again) std::sort(ops.begin(), ops.end());
    budget.schedule = std::move(schedule);
  }

  std::int64_t base_cost() const {
    std::int64_t sum = 0;
    for (const GraphOp& op : graph_.ops) sum += op.cost.count();
    return sum;
  }

  /// The number of an op, or of a stage: that of the op before which others run again.
  std::uint32_t position(std::string_view text) const {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) refuse_position(fmt::format("'{}'", excerpt(text)));
    return position(number);
  }
  std::uint32_t position(std::int64_t number) const {
    if (number < 0 || number >= static_cast<std::int64_t>(graph_.ops.size())) refuse_position(std::to_string(number));
    return static_cast<std::uint32_t>(number);
  }
  [[noreturn]] void refuse_position(const std::string& found) const {
    refuse("\"recompute\" has {} as an op or a stage; expected 0 to {}", found, graph_.ops.size() - 1);
  }

  const Input& input_;
  bool checkmate_;
  simdjson::dom::parser parser_;
  RecomputeGraph graph_;
  std::string where_;
};

int sniff(std::string_view head, GraphForm form) { return recompute_graph_form(head) == form ? 95 : 0; }

const RegisterImporter kCheckmate{
    {"checkmate",
     "training graphs with the schedules that Checkmate's solver found (JSON): costs in 0.01 ms, memory in KiB",
     {".json"},
     [](std::string_view head) { return sniff(head, GraphForm::kCheckmate); },
     read_checkmate}};
const RegisterImporter kMoccasin{{"moccasin",
                                  "graphs of Moccasin with schedules (JSON): costs as us, memory as bytes",
                                  {".json"},
                                  [](std::string_view head) { return sniff(head, GraphForm::kMoccasin); },
                                  read_moccasin}};

}  // namespace

std::string_view to_text(GraphForm form) { return form == GraphForm::kCheckmate ? "checkmate" : "moccasin"; }

std::optional<GraphForm> recompute_graph_form(std::string_view head) {
  const auto has = [&](std::string_view key) { return head.find(key) != head.npos; };
  if (!head.starts_with('{') || !has("\"ops\"") || !has("\"inputs\"")) return std::nullopt;
  if (has("\"mem_kib\"")) return GraphForm::kCheckmate;
  if (has("\"mem\"") && has("\"cost\"")) return GraphForm::kMoccasin;
  return std::nullopt;
}

RecomputeGraph parse_recompute_graph(const Input& input, GraphForm form) { return GraphReader{input, form}.run(); }

Trace to_trace(const RecomputeGraph& graph) {
  TraceBuilder builder;
  builder.only_given_outputs();
  if (graph.fixed > Bytes{}) {
    const BufferId fixed =
        builder.existing({.size = graph.fixed, .name = builder.text("fixed"), .kind = BufferKind::kParameter});
    builder.output(builder.content(fixed));
  }
  std::vector<std::uint32_t> last(graph.ops.size());
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    last[i] = i;
    for (const std::uint32_t input : graph.ops[i].inputs) last[input] = i;
  }
  std::vector<BufferId> outputs;
  Phase phase = Phase::kUnknown;  // the last one that the file says
  std::vector<TraceBuilder::Touch> touches;
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    if (op.phase != phase && op.phase != Phase::kUnknown) {
      builder.mark(MarkKind::kPhase, op.phase == Phase::kBackward ? "backward" : "forward");
      phase = op.phase;
    }
    const StringId name = builder.text(op.name);
    outputs.push_back(builder.alloc({.size = op.output, .name = name, .kind = BufferKind::kActivation}));
    touches.clear();
    for (const std::uint32_t input : op.inputs) touches.push_back({outputs[input], Access::kRead, Evidence::kSchema});
    touches.push_back({outputs[i], Access::kWrite, Evidence::kSchema});
    builder.run({.name = name, .phase = op.phase, .duration = op.cost}, touches);
    for (const std::uint32_t input : op.inputs)
      if (last[input] == i) builder.free(outputs[input]);
    if (last[i] == i) builder.free(outputs[i]);
  }
  builder.meta()["source"] = to_text(graph.form);
  builder.meta()["time"] = "measured";
  return builder.finish();
}

Trace read_checkmate(const Input& input) { return to_trace(parse_recompute_graph(input, GraphForm::kCheckmate)); }
Trace read_moccasin(const Input& input) { return to_trace(parse_recompute_graph(input, GraphForm::kMoccasin)); }

}  // namespace tidepool
