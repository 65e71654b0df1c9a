
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "simulator/studies/report/run_data.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBands = std::tuple_size_v<decltype(MemoryPoint::held)>;

std::size_t band_of(const BufferDifference& each) { return std::min(each.row + 1, kBands - 1); }

Json band_names(const TraceDiff& diff) {
  Json names{"the same in both"};
  for (std::size_t band = 1; band < kBands && band <= diff.rows.size(); ++band) {
    const DifferenceRow& row = diff.rows[band - 1];
    names.push_back(band + 1 == kBands && diff.rows.size() >= kBands
                        ? fmt::format("{} other differences", diff.rows.size() + 2 - kBands)
                        : fmt::format("{}{}: {}", word(row.change),
                                      row.kind == BufferKind::kUnknown ? "" : fmt::format(" {}", word(row.kind)),
                                      cause_text(row)));
  }
  return names;
}

/// What the program does at a place, without what only one of the traces has: "aten::mm (model.py:12)".
std::string place_name(const Trace& trace, const Event& event) {
  if (event.kind != EventKind::kRun) {
    const std::string_view line = trace.text(trace.buffer(BufferId{event.id}).line);
    return line.empty() ? "an allocation" : fmt::format("allocation ({})", line);
  }
  const Op& op = trace.op(OpId{event.id});
  const std::string_view line = trace.text(op.line);
  return fmt::format("{}{}", trace.text(op.name), line.empty() ? "" : fmt::format(" ({})", line));
}

Json places_of(const Compared& found, DataBlocks& blocks) {
  std::unordered_map<std::string, std::int64_t> known;
  Json names = Json::array();
  std::vector<DataColumn> columns{{"name", {}}, {"only", {}}};  // only: 0 in both, 1 in A, 2 in B
  for (const ProgramPlace& place : found.diff.places) {
    const bool in_b = place.a == ProgramPlace::kNone;
    const Trace& trace = in_b ? found.b : found.a;
    const auto [entry, added] = known.try_emplace(place_name(trace, trace.events()[in_b ? place.b : place.a]),
                                                  static_cast<std::int64_t>(known.size()));
    if (added) names.push_back(entry->first);
    columns[0].values.push_back(entry->second);
    columns[1].values.push_back(in_b ? 2 : place.b == ProgramPlace::kNone ? 1 : 0);
  }
  return {{"table", blocks.add_table(columns)}, {"names", blocks.add_text(json_text(names))}};
}

}  // namespace

std::vector<MemoryPoint> difference_curve(const Compared& found, bool of_b) {
  const Trace& trace = of_b ? found.b : found.a;
  std::vector<std::uint8_t> band(trace.buffers().size());
  for (const BufferDifference& each : found.diff.buffers)
    if (const BufferId id = of_b ? each.b : each.a; id.valid())
      band[id.index()] = static_cast<std::uint8_t>(band_of(each));
  MemoryCurve curve;
  const auto change = [&](std::size_t place, std::size_t buffer, std::int64_t sign) {
    curve.change(Nanos{static_cast<std::int64_t>(place)}, band[buffer], trace.buffers()[buffer].size * sign);
  };
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before) change(0, i, 1);
  const std::vector<ProgramPlace>& places = found.diff.places;
  const auto position = [&](std::size_t place) { return of_b ? places[place].b : places[place].a; };
  std::size_t place = 0;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    while (place < places.size() && (position(place) == ProgramPlace::kNone || position(place) < i)) ++place;
    const Event& event = trace.events()[i];
    if (event.kind == EventKind::kAlloc) change(place, event.id, 1);
    if (event.kind == EventKind::kFree) change(place, event.id, -1);
  }
  return curve.finish();
}

Json difference_data(const Compared& found, DataBlocks& blocks) {
  Json json = to_json(found);
  for (std::size_t i = 0; i < found.diff.rows.size(); ++i)
    if (std::string ends = ends_text(found, found.diff.rows[i]); !ends.empty())
      json["rows"][i]["ends"] = std::move(ends);
  json["names"] = {found.name_a, found.name_b};
  json["bands"] = band_names(found.diff);
  json["columns"] = words<BufferKind>();
  json["end"] = found.diff.places.size() + 1;
  json["by_op"] = !found.a.ops().empty() && !found.b.ops().empty();
  json["places"] = places_of(found, blocks);
  json["curves"] = Json::array();
  for (const bool of_b : {false, true}) {
    const std::vector<MemoryPoint> points = difference_curve(found, of_b);
    json["curves"].push_back(memory_data(memory_levels(points, Nanos{json["end"].get<std::int64_t>()}), blocks));
  }
  return json;
}

}  // namespace tidepool
