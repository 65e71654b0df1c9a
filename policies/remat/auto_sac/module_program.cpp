#include "policies/remat/auto_sac/module_program.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/solvers/bounds/linear_program.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool {
namespace {

bool contains(const ModuleStats& outer, const ModuleStats& inner) {
  return outer.path.empty() || lies_in(inner.path, outer.path);
}

/// Bytes that the module's ops make beyond those that are saved without checkpointing.
Bytes kept_besides(const ModuleStats& module) { return std::max(module.made - module.saved, Bytes{}); }
Bytes made(const ModuleStats& module) { return std::max(module.made, module.saved); }

class Program {
 public:
  Program(const ModelStats& model, Bytes budget, std::int64_t shards, int nodes)
      : model_{model},
        budget_{budget},
        shards_{shards},
        nodes_{nodes},
        unit_{static_cast<double>(std::max(budget, Bytes{1}).count())} {
    for (const ModuleStats& module : model_.modules) longest_ = std::max(longest_, module.runtime);
  }

  std::optional<ModuleChoice> solve() {
    for (const ModuleStats& module : model_.modules) add(module);
    for (std::size_t i = 0; i < modules().size(); ++i) choose_one_around(i);
    for (const ModuleStats& module : modules()) limit(module);
    const LinearProgram::Solution solution = program_.solve({.nodes = nodes_});
    if (solution.x.empty()) return {};
    return read(solution.x);
  }

 private:
  struct Term {
    std::uint32_t variable;
    double coefficient;
  };

  const std::vector<ModuleStats>& modules() const { return model_.modules; }
  double scaled(Bytes bytes) const { return static_cast<double>(bytes.count()) / unit_; }

  void row(double lower, double upper, const std::vector<Term>& terms) {
    const std::uint32_t row = program_.row(lower, upper);
    for (const Term& term : terms) program_.add(row, term.variable, term.coefficient);
  }

  /// Adds variables for a module: whether it is checkpointed, the share that it gives up, and the share that then runs
  /// again.
  void add(const ModuleStats& module) {
    const double time =
        static_cast<double>(module.runtime.count()) / static_cast<double>(std::max(longest_, Nanos{1}).count());
    const std::uint32_t chosen = program_.integer(0, module.leaf || made(module) == Bytes{} ? 0 : 1, 0);
    const std::uint32_t given_up = program_.variable(0, 1, 0),
                        again = program_.variable(0, LinearProgram::kInfinity, 1);
    chosen_.push_back(chosen);
    given_up_.push_back(given_up);
    again_.push_back(again);
    row(0, LinearProgram::kInfinity, {{chosen, 1}, {given_up, -1}});
    if (module.leaf || made(module) == Bytes{}) return;
    const double least = scaled(kept_besides(module)) / scaled(made(module));
    row(0, LinearProgram::kInfinity, {{given_up, 1}, {chosen, -least}});
    for (const StraightLine& line : module.tradeoff)
      row(0, LinearProgram::kInfinity, {{again, 1}, {given_up, -time * line.slope}, {chosen, -time * line.intercept}});
  }

  /// At most one of a module and the modules around it is checkpointed. The row of an inner module covers outer ones.
  void choose_one_around(std::size_t module) {
    if (module + 1 < modules().size() && contains(modules()[module], modules()[module + 1])) return;
    std::vector<Term> around;
    for (std::size_t i = 0; i <= module; ++i)
      if (contains(modules()[i], modules()[module])) around.push_back({chosen_[i], 1});
    row(-LinearProgram::kInfinity, 1, around);
  }

  /// Limits the live bytes during the backward pass of a module to the budget.
  void limit(const ModuleStats& module) {
    std::vector<Term> absent;
    for (std::size_t i = 0; i < modules().size(); ++i) {
      if (modules()[i].returned >= module.returned) continue;
      absent.push_back({given_up_[i], scaled(made(modules()[i]))});
      absent.push_back({chosen_[i], -scaled(kept_besides(modules()[i]))});
    }
    row(scaled(present(module)) - scaled(budget_), LinearProgram::kInfinity, absent);
  }

  Bytes present(const ModuleStats& module) const {
    return module.alive + module.temporary + (model_.parameters + module.gradients) / shards_;
  }

  ModuleChoice read(const std::vector<double>& x) const {
    ModuleChoice choice;
    std::vector<Bytes> absent(modules().size());
    for (std::size_t i = 0; i < modules().size(); ++i) {
      if (x[chosen_[i]] < 0.5) continue;
      choice.modules.push_back({i, x[given_up_[i]]});
      absent[i] = Bytes{std::llround(x[given_up_[i]] * static_cast<double>(made(modules()[i]).count()))} -
                  kept_besides(modules()[i]);
      choice.recompute += Nanos{std::llround(x[again_[i]] * static_cast<double>(longest_.count()))};
    }
    for (const ModuleStats& module : modules()) {
      Bytes bytes = present(module);
      for (std::size_t i = 0; i < modules().size(); ++i)
        if (modules()[i].returned < module.returned) bytes -= absent[i];
      choice.peak = std::max(choice.peak, bytes);
    }
    return choice;
  }

  const ModelStats& model_;
  Bytes budget_;
  std::int64_t shards_;
  int nodes_;  // most nodes of branch and bound; many solutions are equal, so the best one by then is nearly optimal
  double unit_;
  Nanos longest_;
  LinearProgram program_;
  std::vector<std::uint32_t> chosen_, given_up_, again_;  // by module
};

}  // namespace

std::optional<ModuleChoice> choose_modules(const ModelStats& model, Bytes budget, std::int64_t shards, int nodes) {
  return Program{model, budget, shards, nodes}.solve();
}

}  // namespace tidepool
