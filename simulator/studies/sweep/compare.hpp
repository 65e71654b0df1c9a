// Differences between two sets of results: two files, policies, machines or versions of the program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/studies/sweep/database.hpp"

namespace tidepool {

/// Some of the runs of a database.
struct ResultSelection {
  std::string text;  ///< the selection as the user wrote it
  std::string path;
  std::vector<std::pair<std::string, std::string>>
      wanted;  ///< "run", "trace", "capacity" or another column of role identity, and its value

  /// Whether the selection contains a run. The value of "run" is a prefix of a run's key; a capacity may be a size, a
  /// fraction of the peak or none; other values are written as in the database.
  bool has(const KeyedRow& run) const;
  /// Whether the selection asks for one value of a column.
  bool fixes(std::string_view column) const;
};

/// Reads "r.sqlite" or "r.sqlite:policy=dtr,capacity=0.5x".
/// @throws InputError  "r.sqlite:polcy=dtr: no column named 'polcy', did you mean 'policy'?; known: ...",
///                     "r.sqlite:policy: 'policy' is no choice; expected COLUMN=VALUE, as in policy=dtr"
ResultSelection parse_selection(const std::string& text);

/// A column that differs between paired runs.
struct MovedColumn {
  std::string_view name;
  std::int64_t runs = 0;         ///< pairs of runs in which it differs
  std::vector<double> relative;  ///< b / a - 1, ascending, of numbers where a is not 0
};

struct MovedRun {
  std::string key_a, key_b;
  double change = 0;  ///< sort key: infinite if the outcomes differ, else |makespan b / makespan a - 1|
};

struct ResultComparison {
  std::int64_t identical = 0;
  std::vector<MovedRun> moved;              ///< the most changed first
  std::vector<MovedColumn> columns;         ///< columns that differ in any pair, in the order of a row
  std::vector<std::string> only_a, only_b;  ///< keys of runs that have no counterpart
  /// If there are no pairs: a column of role identity in which no run of A has a value of B, and one value of each.
  struct {
    std::string column, a, b;
  } apart = {};
  /// The number of runs for each pair of different outcomes (in A, in B).
  std::map<std::pair<std::string, std::string>, std::int64_t> outcomes;

  bool same() const { return moved.empty() && only_a.empty() && only_b.empty(); }
};

/// Pairs the runs of two selections and compares their columns of role result. Two runs are a pair if their identity
/// columns are equal, except the version and the columns that a selection fixes (for a policy or pool, also its
/// options). If a selection names its run and each has one run, these are a pair. Takes some hundred bytes of memory a
/// run.
/// @throws InputError  "r.sqlite:policy=dtr: selects no run",
///                     "r.sqlite: runs K and L would both be compared with the same run; expected a choice between
///                     them"
ResultComparison compare(const ResultSelection& a, const Database& database_a, const ResultSelection& b,
                         const Database& database_b);

}  // namespace tidepool
