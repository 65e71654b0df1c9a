// One run as a row, with the same names for JSON keys and database columns, and the version of the program that made
// it.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/run.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/robustness.hpp"

namespace tidepool {

enum class ColumnType : std::uint8_t { kText, kInteger, kReal, kFlag };

/// The role of a column.
enum class ColumnRole : std::uint8_t {
  kIdentity,   ///< a setting of the run; together, the columns of this role determine the result
  kLabel,      ///< a name that a user gave
  kResult,     ///< follows from the settings; the same on every host and every time
  kWallClock,  ///< time that the host took: differs from run to run
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

/// A value of a row; std::monostate if it has no meaning for the run.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// One value for each of result_columns().
using Row = std::vector<Value>;

/// The value of a column that exists.
const Value& at(const Row& row, std::string_view column);
const std::string& text_at(const Row& row, std::string_view column);

/// Between which ratios the run's overhead_ratio lies, where a model estimated the op times.
RatioBetween between_of(const Row& row);

/// The columns of role result in which two rows differ, in the order of a row. Two rows of one key must not differ in
/// any. With count_search, times contain wall time and are left out.
std::vector<std::string_view> moved_results(const Row& a, const Row& b);

/// "12", "0.5", "text", "none": a value for people and CSV.
std::string value_text(const Value& value);

/// A trace with the name that the user gave.
struct NamedTrace {
  std::string name;  ///< as on the command line
  Trace trace;
};

/// 32 hexadecimal digits over a text.
std::string content_key(std::string_view text);

/// A hash of all values of a machine file, except the sources of its numbers.
std::string machine_hash(Machine machine);

/// The identity of a run: a hash of 32 hexadecimal digits over the content of the trace, the names of pool, policy and
/// options, the content of files that options name, the machine's name and numbers, capacity, seed, assumptions,
/// overhead limit, iterations, whether the steady state is asked for, whether the time of decisions is counted, and the
/// version of the program. @throws InputError  if a file that an option names cannot be read
std::string run_key(const Trace& trace, const RunSpec& spec);

/// The row of a run. If the run ended early, times and counts are those up to its end; if it failed, there are none.
/// @param bound  a bound on the run, if one is known; a bound that proves that no plan exists gives a kind and no time.
///               Left out if it is above the time of a run that did not settle
/// @param result  needs its plan where needs_plan()
Row make_row(const NamedTrace& trace, Bytes ideal_peak, const RunSpec& spec, const Result& result,
             const std::optional<Bound>& bound);

/// Whether a row needs the plan of its run, since a model estimated the trace's op times: see ratios_of_times().
bool needs_plan(const Trace& trace);

/// simulate() for a run whose failure must not end other runs: any exception becomes Outcome::kError with its message.
Result try_simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

/// The result of run(). Any exception becomes Outcome::kError with its message.
template <class Run>
Result or_error(Run run) {
  Result failed;
  failed.outcome = Outcome::kError;
  try {
    return run();
  } catch (const std::bad_alloc&) {
    failed.message = "the run needs more memory than this host has";
  } catch (const std::exception& error) {
    failed.message = error.what();
  } catch (...) {
    failed.message = "the policy threw an object that is no std::exception";
  }
  return failed;
}

/// One JSON object on one line, without a line end; values without a meaning are absent.
std::string to_json(const Row& row);

/// The row as a JSON object.
nlohmann::ordered_json to_json_object(const Row& row);

/// One value; null if it has no meaning.
nlohmann::ordered_json to_json_value(const Value& value);

/// The release and the first 64 bits of a hash of all C++ sources of traces/, simulator/ and policies/, as in
/// "0.1.0+3f2a9c417be0d655". Two builds whose results may differ have different versions.
std::string_view build_version();

}  // namespace tidepool
