// Grid of runs: lists and ranges of pools, policies, capacities, ..., and their cross product.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/run_spec.hpp"

namespace tidepool {

/// The axes of a grid as the command line gives them. The first five are lists, separated by commas outside
/// parentheses.
struct GridText {
  std::string pool = "best-fit";     ///< specs, or "all"
  std::string policy = "none";       ///< chains, or "all"
  std::string capacity = "machine";  ///< see parse_capacities
  std::string machine = "a100-pcie4";
  std::string seed = "1";  ///< see parse_seeds
  std::string assume = {};
  std::string overhead_limit = {};
  std::string iterations = {};  ///< see parse_iterations and Grid(); raised to kUsualIterations if it is less
  bool first = false;           ///< run one first step alone
  bool count_search = false;
};

/// Calls visit(name, text) for each text of a GridText, const or not, in their order.
template <class Text, class Visit>
void for_each_text(Text& grid, const Visit& visit) {
  visit("pool", grid.pool);
  visit("policy", grid.policy);
  visit("capacity", grid.capacity);
  visit("machine", grid.machine);
  visit("seed", grid.seed);
  visit("assume", grid.assume);
  visit("overhead_limit", grid.overhead_limit);
  visit("iterations", grid.iterations);
}

/// The runs of a grid: every combination of machine, policy, pool, capacity and seed, each once; the seed varies
/// fastest. Holds the lists only, so memory does not grow with the number of runs.
class Grid {
 public:
  /// Runs are of the steady state if `text.iterations` is given, or if the trace repeats() and no paper's assumptions
  /// are named. Otherwise, and with `text.first`, they are of one step alone.
  /// @throws InputError  for an unknown name, option or unit, or a value out of range
  Grid(const GridText& text, const Trace& trace);

  std::size_t size() const;
  /// `index` < size().
  RunSpec at(std::size_t index) const;
  std::span<const Machine> machines() const { return machines_; }
  /// The paths that options of the pools and policies name, each once.
  std::vector<std::string> files() const;
  /// The trace's peak under the assumptions of the runs.
  Bytes ideal_peak() const { return ideal_peak_; }

 private:
  std::vector<Spec> pools_;
  std::vector<PolicyChain> policies_;
  std::vector<std::string> capacities_;
  std::vector<Machine> machines_;
  std::vector<std::vector<Bytes>> capacities_of_;  // by machine
  std::vector<std::uint64_t> seeds_;
  Bytes ideal_peak_;
  RunSpec common_;
};

/// The least value of the limit on the iterations until a run has settled. Results would depend on a lower limit.
inline constexpr int kUsualIterations = 16;

/// Whether the step repeats: some buffer existed before it and outlives it.
bool repeats(const Trace& trace);

/// @throws InputError  "--iterations: '0' is not a number of iterations; expected 1 or more"
int parse_iterations(const std::string& text);

/// Reads a list of capacities and ranges of them: "0.3x..1.0x/8,16GiB" is 0.3x, 0.4x, ... 1x and 16GiB. Returns a text
/// for each: parse_capacity() reads it, or it is "machine", the memory that the machine has.
/// @throws InputError  "'0.3x..1.0x' is not a range; expected FIRST..LAST/COUNT, two shares or two sizes and a whole
/// number from 2 to 10000, as in 0.3x..1.0x/8"
std::vector<std::string> parse_capacities(std::string_view text);

/// Reads a list of whole numbers and ranges of them: "1..3,7" is 1, 2, 3, 7.
/// @throws InputError  "'1..x' is not a seed; expected a whole number from 0 on, or a range of at most 10000 of them,
/// as in 7 or 1..3"
std::vector<std::uint64_t> parse_seeds(std::string_view text);

}  // namespace tidepool
