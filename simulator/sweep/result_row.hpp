// One run as a row: the same names for JSON keys and database columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/bounds/bound.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

enum class ColumnType : std::uint8_t { kText, kInteger, kReal, kFlag };

/// What a column tells of a run.
enum class ColumnRole : std::uint8_t {
  kIdentity,   ///< what was run: with the others of this role, all that may change a result
  kLabel,      ///< how somebody called it
  kResult,     ///< follows from what was run, on any machine and at any time
  kWallClock,  ///< how long the host took: differs from time to time
};
std::string_view to_text(ColumnRole role);

/// `name` is a JSON key, "outer.inner" for a key of a nested object; a database column is called "outer_inner".
struct Column {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  ColumnRole role = ColumnRole::kResult;
};

/// Every column in the order of a row.
std::span<const Column> result_columns();

/// Nothing where the number has no meaning.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// One value for each of result_columns().
using Row = std::vector<Value>;

/// The value of a column that exists.
const Value& at(const Row& row, std::string_view column);
const std::string& text_at(const Row& row, std::string_view column);

/// The columns in which two runs differ although they follow from what was run, in their order: of two rows of one key,
/// none. With count_search, times contain what the host took and are left out.
std::vector<std::string_view> moved_results(const Row& a, const Row& b);

/// "12", "0.5", "text", "none": a value for people and CSV.
std::string value_text(const Value& value);

/// A trace as a command got it.
struct NamedTrace {
  std::string name;  ///< as the user gave it
  Trace trace;
};

/// 32 hexadecimal digits over a text.
std::string content_key(std::string_view text);

/// What identifies a run, whoever does it, whenever: 32 hexadecimal digits over the trace's content, what pool, policy
/// and options are called, the machine's numbers, capacity, seed, assumptions, limit, iterations, whether they are to
/// settle, and program version.
std::string run_key(const Trace& trace, const RunSpec& spec);

/// All that is known about a run. Of one that ended early, clocks and counts are up to where it came; of one that
/// failed there are none.
/// @param bound  that holds for the run, if any is known; one that says that no plan exists has a kind and no time
Row make_row(const NamedTrace& trace, Bytes ideal_peak, const RunSpec& spec, const Result& result,
             const std::optional<Bound>& bound);

/// simulate() for a run that must not end the others: whatever it throws becomes Outcome::kError with the message.
Result try_simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

}  // namespace tidepool
