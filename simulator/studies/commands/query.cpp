// tidepool query: a view or any query of a database of results, for people, spreadsheets and data frames.
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/output.hpp"
#include "traces/base/quantity.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kWidest = 60;  // characters of a table's column; longer texts are cut

constexpr std::size_t kMostCells = 4'000'000;  // of a table, which needs all rows to know its widths: some 400 MB

struct QueryArguments {
  std::string database, sql = "frontier", format = "table", output, time_limit = "60s";
};

/// A field of RFC 4180, quoted only if necessary. NULL becomes an empty field, an empty text becomes "".
std::string csv_field(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "";
  const std::string text = value_text(value);
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + "\"";
}

std::string joined(std::span<const std::string> fields) {
  std::string line;
  for (const std::string& field : fields) line += (&field == fields.data() ? "" : ",") + field;
  return line + "\n";
}

/// A row as a JSON object with every column, null for NULL, so that all lines have the same columns.
std::string json_line(std::span<const std::string> names, std::span<const Value> values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = to_json_value(values[i]);
  return json_text(object) + "\n";
}

/// Number of characters of a text in UTF-8.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::string blanks(width - characters(text), ' ');
  return to_the_right ? blanks + text : text + blanks;
}

/// Columns as wide as their content, numbers to the right.
std::string table(std::span<const std::string> names, std::span<const std::vector<Value>> rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> numbers(names.size(), true);
  for (const std::string& name : names) widths.push_back(characters(printable(name)));
  const auto shown = [](const Value& value) {
    std::string text = std::holds_alternative<std::monostate>(value) ? "-" : printable(value_text(value));
    return characters(text) > kWidest ? fmt::format("{:.{}}...", text, kWidest - 3) : text;
  };
  for (const std::vector<Value>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], characters(shown(row[i])));
      if (std::holds_alternative<std::string>(row[i])) numbers[i] = false;
    }
  std::string text;
  const auto add = [&](const auto& cell) {
    std::string line;
    for (std::size_t i = 0; i < names.size(); ++i) line += padded(cell(i), widths[i], numbers[i]) + "  ";
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add([&](std::size_t i) { return printable(names[i]); });
  for (const std::vector<Value>& row : rows) add([&](std::size_t i) { return shown(row[i]); });
  return text;
}

/// @throws InputError  "no table or view named 'fronteir', did you mean 'frontier'?; known: ..."
void require_table(const Database& database, const std::string& name) {
  std::vector<std::string> known;
  database.query(
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY name",
      [](std::span<const std::string>) {},
      [&](std::span<const Value> values) { known.push_back(value_text(values.front())); });
  const auto same = [&](const std::string& each) { return strcasecmp(each.c_str(), name.c_str()) == 0; };
  if (std::none_of(known.begin(), known.end(), same)) throw InputError{unknown_name("table or view", name, known)};
}

/// @throws InputError  "two columns are named 'policy'; expected different names in JSON lines (AS gives another one)"
void require_different(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw InputError{fmt::format(
        "two columns are named '{}'; expected different names in JSON lines (AS gives another one)", *twice)};
}

int run_query(const QueryArguments& arguments) {
  if (arguments.format != "table" && arguments.format != "csv" && arguments.format != "jsonl")
    throw InputError{fmt::format("--to: '{}' is not a format; expected table, csv or jsonl", arguments.format)};
  const Database database{arguments.database, Database::Open::kExisting};
  require_writable(arguments.output);
  const Nanos limit = naming("--time-limit", [&] { return parse_nanos(arguments.time_limit); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds{limit.count()};
  const Interruptible interruptible;
  const bool is_name = std::all_of(arguments.sql.begin(), arguments.sql.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  std::error_code none;  // set if the output does not exist yet
  if (!arguments.output.empty() && std::filesystem::equivalent(arguments.output, arguments.database, none))
    throw InputError{fmt::format("{}: is the database itself; expected another file", arguments.output)};
  std::vector<std::string> names;
  std::vector<std::vector<Value>> rows;  // for the format "table", which needs all rows to know the widths
  std::string written;                   // for a file, which is replaced only by a complete answer
  const auto print = [&](const std::string& text) {
    if (arguments.output.empty())
      std::fwrite(text.data(), 1, text.size(), stdout);
    else
      written += text;
  };
  const auto head = [&](std::span<const std::string> columns) {
    names.assign(columns.begin(), columns.end());
    if (arguments.format == "jsonl") require_different(names);
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(csv_field(Value{name}));
    if (arguments.format == "csv") print(joined(fields));
  };
  bool too_wide = false;
  const auto row = [&](std::span<const Value> values) {
    if (arguments.format == "jsonl") return print(json_line(names, values));
    if (arguments.format == "table") {
      too_wide = (rows.size() + 1) * values.size() > kMostCells;
      return too_wide ? void() : void(rows.emplace_back(values.begin(), values.end()));
    }
    std::vector<std::string> fields;
    for (const Value& value : values) fields.push_back(csv_field(value));
    print(joined(fields));
  };
  if (is_name) require_table(database, arguments.sql);
  const bool complete = database.query(is_name ? "SELECT * FROM " + arguments.sql : arguments.sql, head, row, [&] {
    return too_wide || Interruptible::asked() || std::chrono::steady_clock::now() > end;
  }) && !too_wide;
  if (arguments.format == "table") print(table(names, rows));
  if (!complete)
    say("query: {}; {}\n",
        Interruptible::asked() ? "interrupted"
        : too_wide             ? fmt::format("a table has at most {} values", grouped(std::int64_t{kMostCells}))
                               : fmt::format("more than {}", to_text(limit)),
        arguments.output.empty() ? "there may be more rows" : "nothing is written");
  if (!complete && !arguments.output.empty()) return Interruptible::asked() ? Interruptible::code() : 1;
  if (!arguments.output.empty())
    write_file(arguments.output, written);
  else if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error{"stdout: not all of it could be written"};
  return Interruptible::asked() ? Interruptible::code() : complete ? 0 : 1;
}

const RegisterCommand kQuery{
    {.name = "query",
     .summary = "a view or a query of a sweep's database, as a table, CSV or JSON lines",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<QueryArguments>();
       app.add_option("results", arguments->database, "what sweep -o wrote").required().type_name("FILE");
       app.add_option("query", arguments->sql,
                      "one SELECT, or a view or table: frontier, best_policy, gap_to_bound, predicted_vs_measured, "
                      "failures, runs, run_columns, measurements, sweeps")
           .capture_default_str();
       app.add_option("--to", arguments->format, "table, csv or jsonl (for data frames and Parquet: typed, complete)")
           .capture_default_str();
       app.add_option("-o,--output", arguments->output, "write there instead of to stdout").type_name("FILE");
       app.add_option("--time-limit", arguments->time_limit, "when a query that does not end is ended")
           .capture_default_str();
       return std::function<int()>{[arguments] { return run_query(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
