#include "traces/import/lifetimes.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <unordered_set>

#include "traces/base/lines.hpp"
#include "traces/base/text.hpp"
#include "traces/builder.hpp"

namespace tidepool {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kGaps, kHint };
constexpr std::size_t kRequired = 4;
constexpr std::array<std::string_view, 8> kColumns{"id",        "lower",  "upper", "size",
                                                   "alignment", "offset", "gaps",  "hint"};
constexpr std::string_view kKnownColumns = "id, lower, upper and size";

std::string_view known(LifetimeColumns columns) {
  return columns == LifetimeColumns::kPlain ? kKnownColumns
                                            : "id, lower, upper and size, and perhaps alignment, offset, gaps and hint";
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The parts of a line, without the blanks around them.
std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = line.find(separator);
    fields.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

/// The column of each field.
std::vector<Column> parse_header(const Lines& lines, LifetimeColumns read) {
  std::vector<Column> columns;
  const std::span names = std::span{kColumns}.first(read == LifetimeColumns::kPlain ? kRequired : kColumns.size());
  for (const std::string_view name : split(lines.text(), ',')) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) lines.refuse("column '{}'; expected the columns {}", excerpt(name), known(read));
    const auto column = static_cast<Column>(found - names.begin());
    if (std::find(columns.begin(), columns.end(), column) != columns.end())
      lines.refuse("column '{}' comes twice", name);
    columns.push_back(column);
  }
  for (std::size_t i = 0; i < kRequired; ++i)
    if (std::find(columns.begin(), columns.end(), i) == columns.end())
      lines.refuse("no column '{}'; expected the columns {}", kColumns[i], known(read));
  return columns;
}

/// Reads the gaps of a row, as in "3-5 8-9"; the numbers may be negative.
void parse_gaps(const Lines& lines, std::string_view text, Lifetime& row) {
  for (const std::string_view gap : split(text, ' ')) {
    if (gap.empty()) continue;
    if (gap.find('@') != std::string_view::npos)
      lines.refuse("buffer '{}': gap '{}' keeps a part of the buffer; expected one without a window, as in 3-5",
                   excerpt(row.id), excerpt(gap));
    const std::size_t dash = gap.find('-', 1);
    const std::optional<std::int64_t> lower = parse_whole(gap.substr(0, dash));
    const std::optional<std::int64_t> upper =
        dash == std::string_view::npos ? std::nullopt : parse_whole(gap.substr(dash + 1));
    if (!lower || !upper) lines.refuse("buffer '{}': gap '{}'; expected one as in 3-5", excerpt(row.id), excerpt(gap));
    const bool inside = row.lower <= *lower && *lower < *upper && *upper <= row.upper;
    if (!inside || (!row.gaps.empty() && row.gaps.back().second > *lower))
      lines.refuse("buffer '{}': gap '{}'; expected ascending gaps within [{}, {})", excerpt(row.id), excerpt(gap),
                   row.lower, row.upper);
    row.gaps.emplace_back(*lower, *upper);
  }
  std::int64_t absent = 0;
  for (const auto& [lower, upper] : row.gaps) absent += upper - lower;
  if (absent == row.upper - row.lower)
    lines.refuse("buffer '{}': the gaps leave nothing of [{}, {})", excerpt(row.id), row.lower, row.upper);
}

/// @param fields  by column; nothing where the table has no such column
Lifetime parse_row(const Lines& lines, const std::array<std::optional<std::string_view>, kColumns.size()>& fields) {
  const auto number = [&](Column column) {
    const std::optional<std::int64_t> value = parse_whole(*fields[column]);
    if (!value) lines.refuse("\"{}\" is '{}'; expected a whole number", kColumns[column], excerpt(*fields[column]));
    return *value;
  };
  const auto given = [&](Column column) { return fields[column] && !fields[column]->empty(); };
  Lifetime row;
  row.id = *fields[kId];
  if (!is_utf8(row.id)) lines.refuse("id '{}' is not UTF-8; expected a file in UTF-8", excerpt(row.id));
  row.lower = number(kLower);
  row.upper = number(kUpper);
  row.size = number(kSize);
  if (row.size < 0) lines.refuse("buffer '{}': size is {}; expected at least 0", excerpt(row.id), row.size);
  std::int64_t life = 0;
  if (row.lower >= row.upper)
    lines.refuse("buffer '{}': lower is {} and upper is {}; expected lower < upper", excerpt(row.id), row.lower,
                 row.upper);
  if (__builtin_sub_overflow(row.upper, row.lower, &life))
    lines.refuse("buffer '{}': lives from {} to {}; expected less than 2^63 in between", excerpt(row.id), row.lower,
                 row.upper);
  if (given(kAlignment)) row.alignment = number(kAlignment);
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  if (row.alignment < 1 || row.alignment > kMost)
    lines.refuse("buffer '{}': alignment is {}; expected at least 1 and at most {}", excerpt(row.id), row.alignment,
                 kMost);
  if (given(kOffset)) row.offset = number(kOffset);
  if (row.offset && (*row.offset < 0 || *row.offset > kMost))
    lines.refuse("buffer '{}': offset is {}; expected at least 0 and at most {}", excerpt(row.id), *row.offset, kMost);
  if (row.offset && *row.offset % row.alignment != 0)
    lines.refuse("buffer '{}': offset is {}; expected a multiple of its alignment, {}", excerpt(row.id), *row.offset,
                 row.alignment);
  if (given(kHint)) number(kHint);
  if (given(kGaps)) parse_gaps(lines, *fields[kGaps], row);
  return row;
}

}  // namespace

LifetimeTable read_lifetimes(const Input& input, LifetimeColumns read) {
  Lines lines{input.path(), input.bytes()};
  const auto next = [&] {
    while (lines.next())
      if (!trim(lines.text()).empty()) return true;
    return false;
  };
  if (!next())
    throw InputError{fmt::format("{}: empty; expected a line with the columns {}", input.path(), kKnownColumns)};
  const std::vector<Column> columns = parse_header(lines, read);

  LifetimeTable table;
  for (const Column column : columns) table.constrained |= column >= kRequired && column != kHint;
  std::unordered_set<std::string_view> ids;
  Total sizes;
  while (next()) {
    const std::vector<std::string_view> fields = split(lines.text(), ',');
    if (fields.size() != columns.size()) lines.refuse("{} fields; expected {}", fields.size(), columns.size());
    std::array<std::optional<std::string_view>, kColumns.size()> field;
    for (std::size_t i = 0; i < fields.size(); ++i) field[columns[i]] = fields[i];
    Lifetime row = parse_row(lines, field);
    if (!ids.insert(*field[kId]).second) lines.refuse("id '{}' comes twice", excerpt(row.id));
    try {
      sizes.add(row.size, "sizes");
    } catch (const InputError& error) {
      throw error.at(lines.position());
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Trace trace_of(const std::vector<Lifetime>& rows, const std::map<std::string, std::string>& meta) {
  std::vector<std::size_t> begins(rows.size());
  for (std::size_t i = 0; i < begins.size(); ++i) begins[i] = i;
  std::vector<std::size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].lower < rows[b].lower; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].upper < rows[b].upper; });
  TraceBuilder builder;
  std::vector<BufferId> buffers(rows.size());
  auto end = ends.begin();
  const auto end_until = [&](std::int64_t time) {
    for (; end != ends.end() && rows[*end].upper <= time; ++end) builder.free(buffers[*end]);
  };
  for (const std::size_t i : begins) {
    end_until(rows[i].lower);
    Buffer spec;
    spec.size = Bytes{rows[i].size};
    spec.name = builder.text(rows[i].id);
    buffers[i] = builder.alloc(spec);
  }
  if (!ends.empty()) end_until(rows[ends.back()].upper);
  builder.meta() = meta;
  return builder.finish();
}

bool looks_like_lifetimes(std::string_view head) {
  const std::vector<std::string_view> fields = split(head.substr(0, head.find_first_of("\r\n")), ',');
  const auto has = [&](Column column) {
    return std::find(fields.begin(), fields.end(), kColumns[column]) != fields.end();
  };
  return has(kLower) && has(kUpper);
}

}  // namespace tidepool
