// Lifetimes without a program: "id,lower,upper,size" with half-open intervals [lower, upper), as MiniMalloc and other
// static allocators read them. The columns may come in any order; others (offset, alignment, gaps, ...) are refused,
// since what they ask for would be lost.
#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

#include "traces/builder.hpp"
#include "traces/import/lines.hpp"
#include "traces/import/readers.hpp"
#include "traces/importer.hpp"

namespace tidepool {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize };
constexpr std::array<std::string_view, 4> kColumns{"id", "lower", "upper", "size"};
constexpr std::string_view kKnown = "id, lower, upper and size";

struct Interval {
  std::string_view id;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size = 0;
};

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The fields of a line, without the blanks around them.
std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

/// Which column each field is.
std::vector<Column> parse_header(const Lines& lines) {
  std::vector<Column> columns;
  std::string_view text = lines.text();
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (const std::string_view name : split(text)) {
    const auto found = std::find(kColumns.begin(), kColumns.end(), name);
    if (found == kColumns.end()) lines.refuse("column '{}'; expected the columns {}", excerpt(name), kKnown);
    const auto column = static_cast<Column>(found - kColumns.begin());
    if (std::find(columns.begin(), columns.end(), column) != columns.end())
      lines.refuse("column '{}' comes twice", name);
    columns.push_back(column);
  }
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (std::find(columns.begin(), columns.end(), i) == columns.end())
      lines.refuse("no column '{}'; expected the columns {}", kColumns[i], kKnown);
  return columns;
}

std::vector<Interval> parse_intervals(const Input& input) {
  Lines lines{input.path(), input.bytes()};
  const auto next = [&] {
    while (lines.next())
      if (!trim(lines.text()).empty()) return true;
    return false;
  };
  if (!next()) throw InputError{fmt::format("{}: empty; expected a line with the columns {}", input.path(), kKnown)};
  const std::vector<Column> columns = parse_header(lines);

  std::vector<Interval> intervals;
  std::unordered_set<std::string_view> ids;
  Total sizes;
  while (next()) {
    const std::vector<std::string_view> fields = split(lines.text());
    if (fields.size() != columns.size()) lines.refuse("{} fields; expected {}", fields.size(), columns.size());
    std::array<std::string_view, 4> field;
    for (std::size_t i = 0; i < fields.size(); ++i) field[columns[i]] = fields[i];
    const auto number = [&](Column column) {
      const std::optional<std::int64_t> value = parse_whole(field[column]);
      if (!value) lines.refuse("\"{}\" is '{}'; expected a whole number", kColumns[column], excerpt(field[column]));
      return *value;
    };
    const Interval interval{field[kId], number(kLower), number(kUpper), number(kSize)};
    if (!ids.insert(interval.id).second) lines.refuse("id '{}' comes twice", excerpt(interval.id));
    if (interval.size < 0)
      lines.refuse("buffer '{}': size is {}; expected at least 0", excerpt(interval.id), interval.size);
    if (interval.lower >= interval.upper)
      lines.refuse("buffer '{}': lower is {} and upper is {}; expected lower < upper", excerpt(interval.id),
                   interval.lower, interval.upper);
    try {
      sizes.add(interval.size, "sizes");
    } catch (const InputError& error) {
      throw error.at(lines.position());
    }
    intervals.push_back(interval);
  }
  return intervals;
}

/// Ends come before beginnings at the same time; otherwise the order of the file decides.
Trace to_trace(const std::vector<Interval>& intervals) {
  std::vector<std::size_t> begins(intervals.size());
  for (std::size_t i = 0; i < begins.size(); ++i) begins[i] = i;
  std::vector<std::size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].lower < intervals[b].lower; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].upper < intervals[b].upper; });

  TraceBuilder builder;
  std::vector<BufferId> buffers(intervals.size());
  auto end = ends.begin();
  const auto end_until = [&](std::int64_t time) {
    for (; end != ends.end() && intervals[*end].upper <= time; ++end) builder.free(buffers[*end]);
  };
  for (const std::size_t i : begins) {
    end_until(intervals[i].lower);
    Buffer spec;
    spec.size = Bytes{intervals[i].size};
    spec.name = builder.text(intervals[i].id);
    buffers[i] = builder.alloc(spec);
  }
  if (!ends.empty()) end_until(intervals[ends.back()].upper);
  builder.meta()["source"] = "csv";
  return builder.finish();
}

int sniff_csv(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::vector<std::string_view> fields = split(head.substr(0, head.find_first_of("\r\n")));
  const auto has = [&](Column column) {
    return std::find(fields.begin(), fields.end(), kColumns[column]) != fields.end();
  };
  return has(kLower) && has(kUpper) ? 90 : 0;
}

const RegisterImporter kCsv{
    {"csv", "lifetimes of buffers: id,lower,upper,size", {".csv"}, sniff_csv, read_interval_csv}};

}  // namespace

Trace read_interval_csv(const Input& input) { return to_trace(parse_intervals(input)); }

}  // namespace tidepool
