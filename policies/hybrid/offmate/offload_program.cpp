#include "policies/hybrid/offmate/offload_program.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/solvers/bounds/linear_program.hpp"

namespace tidepool {
namespace {

constexpr double kInfinity = LinearProgram::kInfinity;
constexpr double kPriceOfCopies = 0.01;
constexpr double kTolerance = 1e-6;  // in units of the room: smaller sums are errors of the solver and count as 0

class OffloadProgram {
 public:
  explicit OffloadProgram(const OffloadProblem& problem)
      : problem_{problem}, size_{problem.chain.size()}, steps_{2 * size_} {
    for (const Stage& stage : problem.chain.stages)
      time_unit_ += static_cast<double>((stage.options[0].first + stage.options[0].backward).count());
    time_unit_ = std::max(time_unit_, 1.0);
    out_time_ = time_of_room(problem.d2h);
    in_time_ = time_of_room(problem.h2d);
    for (std::size_t i = 0; i < size_; ++i) add_stage(i);
    for (std::size_t step = 0; step < steps_; ++step) {
      limit_memory(step);
      add_time(step);
    }
  }

  std::optional<std::vector<StageOffload>> solve(int nodes) const {
    const LinearProgram::Solution found = program_.solve({.nodes = nodes});
    if (found.x.empty()) return {};
    std::vector<StageOffload> plan(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::uint32_t o = 0; o < chosen_[i].size(); ++o)
        if (found.x[chosen_[i][o]] > 0.5) plan[i].option = o;
      for (std::size_t step = 0; step < steps_; ++step) {
        plan[i].out.push_back(bytes_of(out_[i], step, found.x));
        plan[i].in.push_back(bytes_of(in_[i], step, found.x));
      }
    }
    return plan;
  }

 private:
  /// Sums of copied bytes after each step in [first, first + variables). Earlier sums are 0, later ones equal the last.
  struct Copied {
    std::size_t first = 0;
    std::vector<std::uint32_t> variables;
    std::optional<std::uint32_t> after(std::size_t step) const {
      if (variables.empty() || step < first) return {};
      return variables[std::min(step - first, variables.size() - 1)];
    }
  };

  const Stage& stage(std::size_t i) const { return problem_.chain.stages[i]; }
  std::size_t backward(std::size_t i) const { return steps_ - 1 - i; }
  double scaled(Bytes size) const {
    return static_cast<double>(size.count()) / static_cast<double>(std::max(problem_.room, 1_B).count());
  }
  double scaled(Nanos time) const { return static_cast<double>(time.count()) / time_unit_; }
  /// The scaled time of copying as many bytes as fit the room.
  double time_of_room(const Link& link) const { return scaled(link.time(problem_.room) - link.time(Bytes{})); }
  Bytes bytes_of(const Copied& copied, std::size_t step, const std::vector<double>& x) const {
    const auto variable = copied.after(step);
    if (!variable || x[*variable] < kTolerance) return {};
    return Bytes{std::llround(x[*variable] * static_cast<double>(problem_.room.count()))};
  }
  void add(std::uint32_t row, std::optional<std::uint32_t> variable, double factor) {
    if (variable) program_.add(row, *variable, factor);
  }
  /// Adds the row: left >= right.
  void at_least(std::optional<std::uint32_t> left, std::optional<std::uint32_t> right) {
    const std::uint32_t row = program_.row(0, kInfinity);
    add(row, left, 1);
    add(row, right, -1);
  }

  void add_stage(std::size_t i) {
    chosen_.emplace_back();
    const std::uint32_t one = program_.row(1, 1);
    for (std::size_t o = 0; o < stage(i).options.size(); ++o) {
      chosen_[i].push_back(program_.integer(0, 1, 0));
      program_.add(one, chosen_[i].back(), 1);
    }
    Copied &out = out_.emplace_back(), &in = in_.emplace_back();
    out.first = i;
    in.first = i + 1;
    if (backward(i) < i + 3) return;  // no step is left in which to copy back
    for (std::size_t step = i; step + 1 < backward(i); ++step) {
      const bool is_last = step + 2 == backward(i);
      out.variables.push_back(program_.variable(0, kInfinity, is_last ? kPriceOfCopies * out_time_ : 0));
      if (step > i) at_least(out.after(step), out.after(step - 1));
    }
    for (std::size_t step = i + 1; step < backward(i); ++step) {
      const bool is_last = step + 1 == backward(i);
      in.variables.push_back(program_.variable(0, kInfinity, is_last ? kPriceOfCopies * in_time_ : 0));
      at_least(in.after(step), in.after(step - 1));
      at_least(out.after(step - 1), in.after(step));
    }
    const std::uint32_t all_back = program_.row(0, 0), limit = program_.row(0, kInfinity);
    add(all_back, out.variables.back(), 1);
    add(all_back, in.variables.back(), -1);
    add(limit, out.variables.back(), -1);
    for (std::size_t o = 0; o < chosen_[i].size(); ++o)
      program_.add(limit, chosen_[i][o], scaled(problem_.movable[i][o]));
  }

  void limit_memory(std::size_t step) {
    const std::size_t own = std::min(step, backward(step));
    const Bytes gradient = step < size_ ? stage(size_ - 1).gradient : Bytes{};
    const std::uint32_t row = program_.row(-kInfinity, 1 - scaled(gradient));
    for (std::size_t i = 0; i < own; ++i) {
      for (std::size_t o = 0; o < chosen_[i].size(); ++o)
        program_.add(row, chosen_[i][o], scaled(stage(i).options[o].saved));
      add(row, step > 0 ? out_[i].after(step - 1) : std::nullopt, -1);
      add(row, in_[i].after(step), 1);
    }
    for (std::size_t o = 0; o < chosen_[own].size(); ++o) {
      const StageOption& option = stage(own).options[o];
      program_.add(row, chosen_[own][o], scaled(step < size_ ? option.forward_peak : option.backward_peak));
    }
  }

  void add_time(std::size_t step) {
    const std::uint32_t time = program_.variable(0, kInfinity, 1);
    const std::uint32_t ops = program_.row(0, kInfinity), outs = program_.row(0, kInfinity),
                        ins = program_.row(0, kInfinity);
    for (const std::uint32_t row : {ops, outs, ins}) program_.add(row, time, 1);
    const std::size_t own = std::min(step, backward(step));
    for (std::size_t o = 0; o < chosen_[own].size(); ++o) {
      const StageOption& option = stage(own).options[o];
      program_.add(ops, chosen_[own][o], -scaled(step < size_ ? option.first : option.backward));
    }
    if (step < size_) add(ops, out_[step].after(step), -out_time_);
    for (std::size_t i = 0; i < size_; ++i) {
      add(outs, out_[i].after(step), -out_time_);
      add(ins, in_[i].after(step), -in_time_);
      if (step == 0) continue;
      add(outs, out_[i].after(step - 1), out_time_);
      add(ins, in_[i].after(step - 1), in_time_);
    }
  }

  const OffloadProblem& problem_;
  std::size_t size_, steps_;
  double time_unit_ = 0, out_time_ = 0, in_time_ = 0;
  LinearProgram program_;
  std::vector<std::vector<std::uint32_t>> chosen_;  // by stage and option
  std::vector<Copied> out_, in_;                    // by stage
};

}  // namespace

std::optional<std::vector<StageOffload>> plan_offload(const OffloadProblem& problem, int nodes) {
  return OffloadProgram{problem}.solve(nodes);
}

}  // namespace tidepool
