#include "simulator/studies/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/studies/advise/advise.hpp"
#include "simulator/studies/report/run_data.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/text.hpp"
#include "traces/names.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

/// JSON for a script element. It is escaped, so that no text in it ends the element.
std::string for_script(const Json& json) {
  std::string text = json_text(json), safe;
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

Json describe(const NamedTrace& named, Bytes ideal_peak) {
  const Trace& trace = named.trace;
  const Summary sum = summarize(trace);
  const Losses& lost = trace.data().losses;
  Json evidence = Json::object(), kinds = Json::object();
  for (std::size_t i = 0; i < sum.evidence.size(); ++i)
    if (sum.evidence[i] != 0) evidence[std::string{words<Evidence>()[i]}] = sum.evidence[i];
  for (std::size_t i = 0; i < sum.bytes_of_kind.size(); ++i)
    kinds[std::string{words<BufferKind>()[i]}] = sum.bytes_of_kind[i].count();
  return {{"name", named.name},
          {"hash", trace.hash()},
          {"buffers", sum.buffers},
          {"ops", sum.ops},
          {"uses", sum.uses},
          {"steps", sum.steps},
          {"streams", sum.streams},
          {"iterations", sum.iterations},
          {"ideal_peak_bytes", ideal_peak.count()},
          {"duration_ns", sum.duration.count()},
          {"kind_bytes", kinds},
          {"evidence_mix", evidence},
          {"losses",
           {{"dropped_records", lost.dropped_records},
            {"unmatched_frees", lost.unmatched_frees},
            {"unknown_pointers", lost.unknown_pointers},
            {"clock_residual_ns", lost.clock_residual_ns}}},
          {"warnings", warnings(trace)},
          {"meta", trace.data().meta}};
}

Json to_json(const Trace& trace, const Autopsy& autopsy, DataBlocks& blocks) {
  Json go = Json::array(), remedies = Json::array();
  std::vector<DataColumn> occupants{{"buffer", {}}, {"offset", {}}, {"held", {}}, {"needed", {}}};
  for (const Occupant& occupant : autopsy.occupants) {
    occupants[0].values.push_back(occupant.buffer.value());
    occupants[1].values.push_back(occupant.offset.count());
    occupants[2].values.push_back(occupant.held.count());
    occupants[3].values.push_back(occupant.needed);
  }
  for (const BufferId buffer : autopsy.eviction.buffers) go.push_back(buffer.value());
  for (const Remedy& remedy : autopsy.remedies) {
    Json entry{{"pool", remedy.pool}, {"policy", remedy.policy}, {"outcome", to_text(remedy.outcome)}};
    if (remedy.outcome == Outcome::kOk) entry["overhead"] = remedy.overhead;
    remedies.push_back(std::move(entry));
  }
  const Shortage& shortage = autopsy.shortage;
  Json json{{"op", shortage.before.valid() ? Json(shortage.before.value()) : Json()},
            {"op_name", shortage.before.valid() ? trace.text(trace.op(shortage.before).name) : ""},
            {"buffer", trace.version(shortage.version).buffer.value()},
            {"wanted_bytes", shortage.size.count()},
            {"held_bytes", shortage.held.count()},
            {"capacity_bytes", autopsy.capacity.count()},
            {"largest_hole_bytes", shortage.largest_hole.count()},
            {"needed_by_op_bytes", autopsy.needed.count()},
            {"free_bytes", (autopsy.capacity - autopsy.placed).count()},
            {"occupants", blocks.add_table(occupants)},
            {"would_have_to_go", go},
            {"would_go_bytes", autopsy.eviction.held.count()},
            {"side_by_side", autopsy.eviction.side_by_side},
            {"remedies", remedies}};
  if (autopsy.least_capacity) json["least_capacity_bytes"] = autopsy.least_capacity->count();
  return json;
}

/// A row without the times that the host took, so that a report of the same input is the same bytes.
Json row_of(Row row) {
  for (std::size_t i = 0; i < row.size(); ++i)
    if (result_columns()[i].role == ColumnRole::kWallClock) row[i] = std::monostate{};
  return Json::parse(tidepool::to_json(row));
}

Json describe(const ReportContent& content, const ReportedRun& run, DataBlocks& blocks) {
  Json json{{"row", row_of(run.row)}, {"machine", Json::parse(machine_file(run.spec.machine))}};
  if (run.bound)
    json["bound"] = {{"name", run.bound->name},
                     {"with", run.bound->with},
                     {"feasible", run.bound->feasible},
                     {"makespan_ns", run.bound->makespan.count()},
                     {"limited_by", to_text(run.bound->limited_by)},
                     {"proof", run.bound->proof}};
  if (run.history) json["data"] = run_data(content.trace->trace, *run.history, blocks);
  if (run.decisions.count() > 0) {
    const std::vector<std::string> policies = deciding_policies(run.spec);
    Json decisions = Json::array();
    for (const Decision& decision : run.decisions.latest())
      decisions.push_back(to_json(decision, content.trace->trace, policies));
    json["decisions"] = blocks.add_text(json_text(decisions));
    json["decision_count"] = run.decisions.count();
  }
  if (run.autopsy) json["autopsy"] = to_json(content.trace->trace, *run.autopsy, blocks);
  return json;
}

/// One cell for each capacity: null if not tried, the overhead if the run ended well and has one, else the outcome.
Json cells_of(const Line& line) {
  Json cells = Json::array();
  for (const Cell& cell : line.cells)
    if (!cell.tried)
      cells.push_back(nullptr);
    else if (cell.outcome == Outcome::kOk && cell.overhead)
      cells.push_back(*cell.overhead);
    else
      cells.push_back(to_text(cell.outcome));
  return cells;
}

Json describe(const Frontier& frontier) {
  Json capacities = Json::array(), lines = Json::array(), bounds = Json::array(), best = Json::array();
  for (const Bytes capacity : frontier.capacities)
    capacities.push_back(capacity == kNoLimit ? Json() : Json(capacity.count()));
  const auto line_of = [](const Line& line) {
    return Json{{"policy", line.policy}, {"pool", line.pool}, {"addresses", line.addresses}, {"cells", cells_of(line)}};
  };
  for (const Line& line : frontier.lines) lines.push_back(line_of(line));
  for (const Line& line : best_pools(frontier)) {
    Json& json = best.emplace_back(line_of(line));
    for (const Cell& cell : line.cells) json["pools"].push_back(cell.pool);
  }
  for (const Line& line : frontier.bounds) bounds.push_back({{"with", line.policy}, {"cells", cells_of(line)}});
  return {{"trace", frontier.trace},
          {"machine", frontier.machine},
          {"setting", frontier.setting},
          {"ideal_peak_bytes", frontier.ideal_peak.count()},
          {"baseline_ns", frontier.baseline.count()},
          {"capacities", capacities},
          {"lines", lines},
          {"best_pools", best},
          {"bounds", bounds}};
}

/// Replaces the first `mark` by `text`.
void fill_in(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  if (at != std::string::npos) page.replace(at, mark.size(), text);
}

}  // namespace

std::string report_page(const ReportContent& content) {
  DataBlocks blocks;
  Json json{{"version", TIDEPOOL_VERSION}, {"command", content.command}};
  if (content.trace) {
    json["trace"] = describe(*content.trace, content.ideal_peak);
    if (std::any_of(content.runs.begin(), content.runs.end(), [](const auto& run) { return run.history.has_value(); }))
      json["tables"] = trace_data(content.trace->trace, blocks);
  }
  json["runs"] = Json::array();
  for (const ReportedRun& run : content.runs) json["runs"].push_back(describe(content, run, blocks));
  json["frontiers"] = Json::array();
  for (const Frontier& frontier : content.frontiers) json["frontiers"].push_back(describe(frontier));

  if (content.advice) {
    json["advice"] = to_json(content.advice->advice);
    json["advice"]["capacity_bytes"] = content.advice->capacity.count();
  }

  if (content.job) json["job"] = to_json(*content.job);
  if (content.compared) json["diff"] = difference_data(*content.compared, blocks);

  std::string page{report_asset("report.html")};
  fill_in(page, "/*STYLE*/", report_asset("report.css"));
  fill_in(page, "/*SCRIPT*/", report_scripts());
  fill_in(
      page, "<!--DATA-->",
      fmt::format("<script type=\"application/json\" id=\"content\">{}</script>\n{}", for_script(json), blocks.html()));
  return page;
}

}  // namespace tidepool
