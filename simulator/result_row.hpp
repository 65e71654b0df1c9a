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
#include "simulator/run.hpp"

namespace tidepool {

enum class ColumnType : std::uint8_t { kText, kInteger, kReal, kFlag };

/// `name` is a JSON key, "outer.inner" for a key of a nested object; a database column is called "outer_inner".
struct Column {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  bool wall_clock = false;  ///< differs from run to run, unlike all else
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

/// A trace as a command got it.
struct NamedTrace {
  std::string name;  ///< as the user gave it
  Trace trace;
};

/// What identifies a run, whoever does it, whenever: 32 hexadecimal digits over the trace's content, what pool, policy
/// and options are called, the machine's numbers, capacity, seed, assumptions, limit, iterations and program version.
std::string run_key(const Trace& trace, const RunSpec& spec);

/// All that is known about a run. Of one that ended early, clocks and counts are up to where it came; of one that
/// failed there are none.
/// @param bound  that holds for the run, if any is known; one that says that no plan exists has a kind and no time
Row make_row(const NamedTrace& trace, Bytes ideal_peak, const RunSpec& spec, const Result& result,
             const std::optional<Bound>& bound);

/// simulate() for a run that must not end the others: whatever it throws becomes Outcome::kError with the message.
Result try_simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

}  // namespace tidepool
