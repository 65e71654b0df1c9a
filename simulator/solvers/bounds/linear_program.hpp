// Linear and mixed integer programs, solved by COIN-OR's CLP and CBC.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// min sum c_j x_j, subject to lower_i <= sum a_ij x_j <= upper_i and lower_j <= x_j <= upper_j, some x_j
/// integer. Coefficients should lie within some six orders of magnitude, so scale bytes and nanoseconds to the
/// instance.
class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  enum class Status : std::uint8_t {
    kOptimal,     ///< within the solver's tolerances
    kInfeasible,  ///< as reported by the solver, without proof
    kUnbounded,   ///< as reported by the solver, without proof
    kLimit        ///< stopped early; `x` is the best known, or empty
  };

  struct Limits {
    std::optional<Nanos> time = {};           ///< wall time; none: no limit
    const std::atomic<bool>* stop = nullptr;  ///< set by another thread to end the search
    std::optional<int> nodes = {};            ///< nodes of branch and bound, for programs with integers; none: no limit
  };

  struct Solution {
    Status status = Status::kLimit;
    double objective = kInfinity;  ///< value of `x`
    double bound = -kInfinity;     ///< no solution is below it; without integers by weak duality, see dual_bound()
    std::vector<double> x;         ///< by variable; empty if none was found
    std::vector<double> duals;     ///< by row: cost of one more unit on its right side; empty with integers
  };

  /// Adds a variable. @return its number, counted from 0
  std::uint32_t variable(double lower, double upper, double cost);
  /// Adds a variable that must be an integer. @return its number, counted with the other variables
  std::uint32_t integer(double lower, double upper, double cost);
  /// Adds a row without coefficients. @return its number, counted from 0
  std::uint32_t row(double lower, double upper);
  /// Adds to the variable's coefficient in the row.
  void add(std::uint32_t row, std::uint32_t variable, double coefficient);

  std::uint32_t variables() const { return static_cast<std::uint32_t>(cost_.size()); }
  std::uint32_t rows() const { return static_cast<std::uint32_t>(row_lower_.size()); }

  Solution solve() const { return solve(Limits{}); }
  Solution solve(const Limits& limits) const;
  /// The same without the demand that variables are integers.
  Solution solve_relaxed(const Limits& limits) const;

  /// The bound that any multipliers of the rows prove: no solution, integer or not, costs less. It holds for inexact
  /// multipliers from any solver. Only this one sum is rounded, and the rounding error is subtracted (Neumaier and
  /// Shcherbina 2004, equation 5). The answer is -infinity if a variable lacks the bound to which its reduced cost
  /// drives it. A reduced cost that is zero within the rounding error may drive it to both: give every variable bounds.
  double dual_bound(std::span<const double> duals) const;
  /// By variable: its cost less the multipliers of its rows times its coefficients.
  std::vector<double> reduced_costs(std::span<const double> duals) const;

 private:
  Solution solve_integer(const Limits& limits) const;

  std::vector<double> lower_, upper_, cost_, row_lower_, row_upper_;
  std::vector<std::uint32_t> integers_;
  std::vector<int> entry_row_, entry_variable_;
  std::vector<double> entry_;
};

}  // namespace tidepool
