// Frontier of memory and time: the runs of a sweep over one trace on one machine, in the order of tables and plots.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/studies/sweep/result_row.hpp"

namespace tidepool {

/// One run.
struct Point {
  std::string policy, pool;  ///< as the user wrote them
  bool addresses = true;     ///< false: the pool only counts bytes
  Bytes capacity;
  Outcome outcome = Outcome::kOk;
  /// makespan / baseline - 1; none: the step takes no time without policy and limit. Only for outcome ok.
  std::optional<double> overhead = 0.0;
  std::string may = {};  ///< actions that the policies may take: "swap", "remat", "swap,remat" or "" for neither
  /// bound / baseline - 1; infinite if no plan exists; none: no bound is known.
  std::optional<double> bound = {};
  RatioBetween between = {};  ///< between which ratios the time lies, where a model estimated the op times
};

/// One pool and policy at one capacity: the median over seeds. Of an even number of seeds, it is the worse of the two
/// in the middle. A run that did not end well is worse than any run that did.
struct Cell {
  bool tried = false;
  Outcome outcome = Outcome::kOk;
  std::optional<double> overhead = 0.0;  ///< as Point::overhead
  std::string pool = {};                 ///< that the runs had; "" for a bound
  RatioBetween between = {};             ///< as Point::between
  /// Whether this cell has less overhead than `other`, or a better outcome.
  bool better_than(const Cell& other) const;
};

/// One pool and policy; of best_pools(), one policy.
struct Line {
  std::string policy;
  std::string pool;  ///< of best_pools(): the pools of the cells, each once, as in "pytorch, best-fit"
  bool addresses = true;
  std::vector<Cell> cells;  ///< by capacity
};

struct Frontier {
  std::string trace, machine;
  Bytes ideal_peak;
  Nanos baseline;
  std::vector<Bytes> capacities;  ///< ascending; no limit comes last
  std::vector<Line> lines;        ///< in the order in which they were first seen
  std::vector<Line> bounds = {};  ///< lower bounds; `policy` has the actions of plans: "swap", "remat" or "swap,remat"
  /// How it differs from other frontiers of the same trace and machine: "overhead limit 1.5, iterations 3".
  std::string setting = {};
};

/// Fills capacities, lines and bounds. Assumes nothing about the order of `points`.
void arrange(std::span<const Point> points, Frontier& frontier);

/// For each policy, the best of its pools at each capacity; pools that only count bytes are used if there are no
/// others.
std::vector<Line> best_pools(const Frontier& frontier);

/// "0.5x", "12.3x" of the peak, or "none"; the size itself if the peak is 0.
std::string fraction_text(Bytes capacity, Bytes ideal_peak);

/// The point of a run. @param policy, pool  as the user wrote them, with their options
Point point_of(const Row& row, const std::string& policy, const std::string& pool);

/// A frontier for each trace on each machine (and for each value of assume, overhead_limit, iterations, steady,
/// count_search and version), in the order of the rows.
std::vector<Frontier> frontiers_of(std::span<const Row> rows);

/// The pool and the policies of a row with their options, as a user writes them: "pytorch(segments=expandable)".
struct WrittenNames {
  std::string pool, policy;
};
WrittenNames written_names(const Row& row);

}  // namespace tidepool
