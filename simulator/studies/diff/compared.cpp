#include "simulator/studies/diff/compared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/one_device.hpp"
#include "traces/program_names.hpp"

namespace tidepool {

template <>
std::span<const std::string_view> words<Difference>() {
  static constexpr std::array<std::string_view, 6> kWords{"new", "gone", "larger", "smaller", "longer", "shorter"};
  return kWords;
}

namespace {

using Json = nlohmann::ordered_json;

/// "activation, clone.py:19".
std::string holder(const DifferenceRow& row) {
  return fmt::format("{}{}", row.kind == BufferKind::kUnknown ? "" : std::string{word(row.kind)} + ", ",
                     cause_text(row));
}

/// Where a trace frees buffers whose ends differ: "to op 3, aten::mm (model.py:12)", "to its end".
std::string until_text(const Trace& trace, OpId op) {
  return op.valid() ? "to " + op_text(trace, op) : "to the end of the step";
}

std::string reason_text(const DifferenceRow& row, Bytes bytes) {
  const std::string size = to_text(std::max(bytes, -bytes));
  switch (row.change) {
    case Difference::kNew:
      return fmt::format("{} are new: {}", size, holder(row));
    case Difference::kGone:
      return fmt::format("{} are gone: {}", size, holder(row));
    case Difference::kLarger:
      return fmt::format("{} because of larger buffers: {}", size, holder(row));
    case Difference::kSmaller:
      return fmt::format("{} because of smaller buffers: {}", size, holder(row));
    case Difference::kLonger:
      return fmt::format("{} live longer: {}", size, holder(row));
    case Difference::kShorter:
      break;
  }
  return fmt::format("{} live shorter: {}", size, holder(row));
}

}  // namespace

std::string cause_text(const DifferenceRow& row) {
  if (row.cause.empty()) return "from before the recorded step";
  return row.causes == 1
             ? row.cause
             : fmt::format("{} and {}", row.cause, counted(static_cast<std::int64_t>(row.causes) - 1, "other module"));
}

std::string ends_text(const Compared& found, const DifferenceRow& row) {
  if (row.change != Difference::kLonger && row.change != Difference::kShorter) return "";
  if (!row.until_a.valid() && !row.until_b.valid()) return "";
  return fmt::format("{} in {}, {} in {}", until_text(found.b, row.until_b), found.name_b,
                     until_text(found.a, row.until_a), found.name_a);
}

std::string first_line(const Compared& found) {
  const TraceDiff& diff = found.diff;
  if (found.same())
    return fmt::format("no difference: {}, {}, peak {}",
                       counted(static_cast<std::int64_t>(diff.paired_ops), found.a.ops().empty() ? "allocation" : "op"),
                       counted(static_cast<std::int64_t>(found.a.buffers().size()), "buffer"), to_text(diff.peak_a));
  const std::string reserved = fmt::format("{} reserves {} for {}: fragmentation", found.name_b,
                                           to_text(found.stated_b.reserved), to_text(found.stated_a.reserved));
  if (diff.same()) return "the same buffers, but " + reserved;
  const std::string_view first = diff.first_b.valid()   ? found.b.text(found.b.op(diff.first_b).line)
                                 : diff.first_a.valid() ? found.a.text(found.a.op(diff.first_a).line)
                                                        : "";
  const auto reason = [&](const DifferenceRow& row, Bytes bytes) {
    std::string where;
    if (!row.by_line && !first.empty())
      where = fmt::format(" (first difference: {})", first);
    else if (const std::string ends = ends_text(found, row); !row.by_line && !ends.empty())
      where = fmt::format(" ({})", ends);
    return fmt::format("; {}{}", reason_text(row, bytes), where);
  };
  const Bytes higher = diff.peak_b - diff.peak_a;
  if (higher == Bytes{}) {
    const auto largest = std::max_element(diff.rows.begin(), diff.rows.end(), [](const auto& x, const auto& y) {
      return std::abs(x.bytes.count()) < std::abs(y.bytes.count());
    });
    return fmt::format("the same peak of {}{}", to_text(diff.peak_a),
                       largest == diff.rows.end() ? ", and other ops" : reason(*largest, largest->bytes));
  }
  const bool up = higher > Bytes{};
  const DifferenceRow* row = nullptr;  // the first one whose cause is known, or else the first one
  for (const DifferenceRow& each : diff.rows)
    if (const bool counts = up ? each.at_peak > Bytes{} : each.at_peak < Bytes{};
        counts && (row == nullptr || (row->cause.empty() && !each.cause.empty())))
      row = &each;
  return fmt::format("{} peaks {} {} than {} ({} for {}){}", found.name_b, to_text(std::max(higher, -higher)),
                     up ? "higher" : "lower", found.name_a, to_text(diff.peak_b), to_text(diff.peak_a),
                     row == nullptr ? "" : reason(*row, row->at_peak));
}

Compared compare_recordings(const std::string& name_a, Trace a, const std::string& name_b, Trace b) {
  naming(name_a, [&] { require_one_memory(a, "`diff` compares one"); });
  naming(name_b, [&] { require_one_memory(b, "`diff` compares one"); });
  TraceDiff diff = diff_traces(a, b);
  const StatedMemory stated_a = stated_memory(a), stated_b = stated_memory(b);
  return {printable(name_a), printable(name_b), std::move(a), std::move(b), stated_a, stated_b, std::move(diff)};
}

Compared compare_recordings(const std::string& path_a, const std::string& path_b) {
  Trace a = load_trace(path_a);
  return compare_recordings(path_a, std::move(a), path_b, load_trace(path_b));
}

Json to_json(const Compared& found) {
  const TraceDiff& diff = found.diff;
  Json rows = Json::array();
  for (const DifferenceRow& row : diff.rows)
    rows.push_back({{"change", word(row.change)},
                    {"cause", row.cause},
                    {"kind", word(row.kind)},
                    {"bytes", row.bytes.count()},
                    {"at_peak_bytes", row.at_peak.count()},
                    {"buffers", row.buffers}});
  const auto op = [](OpId id) { return id.valid() ? Json(id.index()) : Json(nullptr); };
  return {{"identical", found.same()},
          {"sentence", first_line(found)},
          {"paired_ops", diff.paired_ops},
          {"only_a_ops", diff.only_a},
          {"only_b_ops", diff.only_b},
          {"peak_a_bytes", diff.peak_a.count()},
          {"peak_b_bytes", diff.peak_b.count()},
          {"reserved_a_bytes", found.stated_a.reserved.count()},
          {"reserved_b_bytes", found.stated_b.reserved.count()},
          {"peak_of", diff.at_b ? "b" : "a"},
          {"peak_op", op(diff.instant.op)},
          {"other_bytes", diff.other.count()},
          {"first_a_op", op(diff.first_a)},
          {"first_b_op", op(diff.first_b)},
          {"rows", rows}};
}

}  // namespace tidepool
