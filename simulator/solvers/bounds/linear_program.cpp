#include "simulator/solvers/bounds/linear_program.hpp"

#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>

namespace tidepool {
namespace {

using Limits = LinearProgram::Limits;

constexpr int kSignals = 2, kLeft = 1;  // ClpSolve.hpp: otherwise CLP takes Ctrl-C while it runs

bool stopped(const Limits& limits) { return limits.stop != nullptr && limits.stop->load(std::memory_order_relaxed); }

/// Ends CLP's iterations when asked to.
class StopsClp final : public ClpEventHandler {
 public:
  explicit StopsClp(const Limits& limits) : limits_{limits} {}
  int event(Event) override { return stopped(limits_) ? 5 : -1; }  // ClpEventHandler.hpp: 5 ends, -1 goes on
  ClpEventHandler* clone() const override { return new StopsClp(*this); }

 private:
  const Limits& limits_;
};

/// Ends CBC's search when asked to.
class StopsCbc final : public CbcEventHandler {
 public:
  explicit StopsCbc(const Limits& limits) : limits_{limits} {}
  CbcAction event(CbcEvent) override { return stopped(limits_) ? stop : noAction; }
  CbcEventHandler* clone() const override { return new StopsCbc(*this); }

 private:
  const Limits& limits_;
};

double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }  // b may be infinite

double seconds(Nanos time) { return static_cast<double>(time.count()) / 1e9; }

}  // namespace

std::uint32_t LinearProgram::variable(double lower, double upper, double cost) {
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  return variables() - 1;
}

std::uint32_t LinearProgram::integer(double lower, double upper, double cost) {
  integers_.push_back(variable(lower, upper, cost));
  return integers_.back();
}

std::uint32_t LinearProgram::row(double lower, double upper) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return rows() - 1;
}

void LinearProgram::add(std::uint32_t row, std::uint32_t variable, double coefficient) {
  entry_row_.push_back(static_cast<int>(row));
  entry_variable_.push_back(static_cast<int>(variable));
  entry_.push_back(coefficient);
}

LinearProgram::Solution LinearProgram::solve(const Limits& limits) const {
  return integers_.empty() ? solve_relaxed(limits) : solve_integer(limits);
}

LinearProgram::Solution LinearProgram::solve_relaxed(const Limits& limits) const {
  const CoinPackedMatrix matrix{false, entry_row_.data(), entry_variable_.data(), entry_.data(),
                                static_cast<CoinBigIndex>(entry_.size())};
  ClpSimplex model;
  model.setLogLevel(0);
  // CLP takes the size of the matrix from its entries. Set it, because the last rows or variables may have no entries.
  CoinPackedMatrix full{matrix};
  full.setDimensions(static_cast<int>(rows()), static_cast<int>(variables()));
  model.loadProblem(full, lower_.data(), upper_.data(), cost_.data(), row_lower_.data(), row_upper_.data());
  const StopsClp handler{limits};
  model.passInEventHandler(&handler);
  if (limits.time) model.setMaximumWallSeconds(seconds(*limits.time));
  ClpSolve how;
  how.setSolveType(ClpSolve::automatic);
  how.setDoImpliedFree(false);  // CoinUtils 2.11's implied_free_action loses memory in every solve
  how.setSpecialOption(kSignals, kLeft);
  model.initialSolve(how);

  Solution solution;
  if (model.isProvenPrimalInfeasible()) {
    solution.status = Status::kInfeasible;
    solution.bound = kInfinity;
    return solution;
  }
  if (model.isProvenDualInfeasible()) {
    solution.status = Status::kUnbounded;
    return solution;
  }
  solution.duals.assign(model.dualRowSolution(), model.dualRowSolution() + rows());
  solution.bound = dual_bound(solution.duals);
  if (!model.isProvenOptimal()) return solution;
  solution.status = Status::kOptimal;
  solution.objective = model.objectiveValue();
  solution.x.assign(model.primalColumnSolution(), model.primalColumnSolution() + variables());
  return solution;
}

LinearProgram::Solution LinearProgram::solve_integer(const Limits& limits) const {
  CoinPackedMatrix matrix{false, entry_row_.data(), entry_variable_.data(), entry_.data(),
                          static_cast<CoinBigIndex>(entry_.size())};
  matrix.setDimensions(static_cast<int>(rows()), static_cast<int>(variables()));
  OsiClpSolverInterface relaxed;
  relaxed.messageHandler()->setLogLevel(0);
  ClpSolve how;
  how.setSpecialOption(kSignals, kLeft);
  relaxed.setSolveOptions(how);
  relaxed.loadProblem(matrix, lower_.data(), upper_.data(), cost_.data(), row_lower_.data(), row_upper_.data());
  for (const std::uint32_t j : integers_) relaxed.setInteger(static_cast<int>(j));

  CbcModel model{relaxed};
  model.setLogLevel(0);
  model.solver()->messageHandler()->setLogLevel(0);
  CglProbing probing;
  CglGomory gomory;
  CglKnapsackCover covers;
  CglMixedIntegerRounding2 rounding;
  model.addCutGenerator(&probing, -10, "probing");  // a negative frequency: kept only where it helps
  model.addCutGenerator(&gomory, -10, "gomory");
  model.addCutGenerator(&covers, -10, "covers");
  model.addCutGenerator(&rounding, -10, "rounding");
  StopsCbc handler{limits};
  model.passInEventHandler(&handler);
  if (limits.time) {
    model.setUseElapsedTime(true);
    model.setMaximumSeconds(seconds(*limits.time));
  }
  if (limits.nodes) model.setMaximumNodes(*limits.nodes);
  model.initialSolve();
  Solution solution;
  if (model.solver()->isProvenPrimalInfeasible()) {
    solution.status = Status::kInfeasible;
    solution.bound = kInfinity;
    return solution;
  }
  if (model.solver()->isProvenDualInfeasible()) {
    solution.status = Status::kUnbounded;
    return solution;
  }
  model.branchAndBound();
  if (model.bestSolution() != nullptr) {
    solution.x.assign(model.bestSolution(), model.bestSolution() + variables());
    for (const std::uint32_t j : integers_) solution.x[j] = std::round(solution.x[j]);
    solution.objective = model.getObjValue();
  }
  if (model.isProvenOptimal()) {
    solution.status = Status::kOptimal;
    solution.bound = solution.objective;
  } else if (model.isProvenInfeasible()) {
    solution.status = Status::kInfeasible;
    solution.bound = kInfinity;
  } else {
    solution.bound = model.getBestPossibleObjValue();
  }
  return solution;
}

std::vector<double> LinearProgram::reduced_costs(std::span<const double> duals) const {
  std::vector<double> reduced = cost_;
  for (std::size_t i = 0; i < entry_.size(); ++i)
    reduced[static_cast<std::size_t>(entry_variable_[i])] -= entry_[i] * duals[static_cast<std::size_t>(entry_row_[i])];
  return reduced;
}

double LinearProgram::dual_bound(std::span<const double> duals) const {
  // Lagrange: sum_i y_i b_i + sum_j min over the bounds of (c_j - sum_i y_i a_ij) x_j, where b_i is the lower limit of
  // row i if y_i > 0, else the upper one. `size` is the sum of all magnitudes, which limits the rounding error.
  double bound = 0, size = 0;
  std::vector<double> reduced{cost_}, magnitude(cost_.size(), 0);
  std::vector<double> multiplier{duals.begin(), duals.end()};
  for (std::size_t i = 0; i < multiplier.size(); ++i) {
    double& y = multiplier[i];
    const double side = y > 0 ? row_lower_[i] : row_upper_[i];
    if (y == 0 || std::isinf(side)) {
      y = 0;  // the row has no limit on this side
      continue;
    }
    bound += y * side;
    size += std::abs(y * side);
  }
  for (std::size_t k = 0; k < entry_.size(); ++k) {
    const double term = multiplier[static_cast<std::size_t>(entry_row_[k])] * entry_[k];
    reduced[static_cast<std::size_t>(entry_variable_[k])] -= term;
    magnitude[static_cast<std::size_t>(entry_variable_[k])] += std::abs(term);
  }
  for (std::size_t j = 0; j < reduced.size(); ++j) {
    const double error = (magnitude[j] + std::abs(cost_[j])) * 1e-12;
    const double low = reduced[j] - error, high = reduced[j] + error;
    const double least = std::min(
        {product(low, lower_[j]), product(high, lower_[j]), product(low, upper_[j]), product(high, upper_[j])});
    bound += least;
    size += std::abs(least);
  }
  return bound - size * 1e-12;
}

}  // namespace tidepool
