#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/option_values.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/linear_program.hpp"
#include "simulator/solvers/order/alive.hpp"

namespace tidepool {
namespace {

/// OLLA's integer program for one step. There are as many points in time as ops. Each op runs at one point, between the
/// earliest and the latest that its dependencies allow (C). Each buffer is kept at some points (P): it can be kept only
/// if it was made or kept at the point before, and it must be kept where an op runs that uses it but does not make it.
/// Ops at the same point may then run in any order: each order needs at most the memory of all of them together.
class Formulation {
 public:
  Formulation(const Lifetimes& lifetimes, const Dependencies& dependencies)
      : lifetimes_{lifetimes}, dependencies_{dependencies}, points_{dependencies.before.size()} {
    const Bytes least = alive_bound(lifetimes, dependencies), most = recorded_order(lifetimes).peak;
    unit_ = static_cast<double>(std::max(most, 1_B).count());
    peak_ = program_.variable(scaled(least), 1, 1);
    find_spans();
    for (std::uint32_t op = 0; op < points_; ++op) add_op(op);
    for (std::uint32_t op = 0; op < points_; ++op)
      for (const std::uint32_t before : dependencies_.before[op]) put_behind(op, before);
    for (std::size_t t = 0; t < points_; ++t) {
      load_.push_back(program_.row(-LinearProgram::kInfinity, -scaled(lifetimes.always())));
      program_.add(load_[t], peak_, -1);
    }
    keep_buffers();
  }

  /// An order with the least peak, or the best that was found; nothing if none was.
  std::optional<OpOrder> solve(const LinearProgram::Limits& limits) const {
    const LinearProgram::Solution found = program_.solve(limits);
    if (found.x.empty()) return {};
    std::vector<std::size_t> point(points_);
    for (std::size_t op = 0; op < points_; ++op)
      for (std::size_t t = first_[op]; t <= last_[op]; ++t)
        if (found.x[runs_[op][t - first_[op]]] > 0.5) point[op] = t;
    std::vector<std::uint32_t> ops(points_);
    std::iota(ops.begin(), ops.end(), 0);
    std::stable_sort(ops.begin(), ops.end(), [&](std::uint32_t a, std::uint32_t b) { return point[a] < point[b]; });
    return order_of(lifetimes_, std::move(ops), "olla");
  }

 private:
  double scaled(Bytes size) const { return static_cast<double>(size.count()) / unit_; }

  void find_spans() {
    first_.assign(points_, 0);
    last_.assign(points_, points_ - 1);
    for (std::size_t op = 0; op < points_; ++op)
      for (const std::uint32_t before : dependencies_.before[op]) first_[op] = std::max(first_[op], first_[before] + 1);
    for (std::size_t op = points_; op-- > 0;)
      for (const std::uint32_t after : dependencies_.after[op]) last_[op] = std::min(last_[op], last_[after] - 1);
  }

  void add_op(std::uint32_t op) {
    const std::uint32_t once = program_.row(1, 1);
    std::vector<std::uint32_t>& runs = runs_.emplace_back();
    for (std::size_t t = first_[op]; t <= last_[op]; ++t) {
      runs.push_back(program_.integer(0, 1, 0));
      program_.add(once, runs.back(), 1);
    }
  }

  /// Adds `factor` times the variable that is 1 if the op runs at this point.
  void add_run(std::uint32_t row, std::uint32_t op, std::size_t t, double factor) {
    if (t >= first_[op] && t <= last_[op]) program_.add(row, runs_[op][t - first_[op]], factor);
  }

  /// By each point, `op` has run only if `before` has run earlier.
  void put_behind(std::uint32_t op, std::uint32_t before) {
    for (std::size_t t = first_[op]; t <= last_[before]; ++t) {
      const std::uint32_t row = program_.row(-LinearProgram::kInfinity, 0);
      for (std::size_t at = 0; at <= t; ++at) add_run(row, op, at, 1);
      for (std::size_t at = 0; at < t; ++at) add_run(row, before, at, -1);
    }
  }

  void keep_buffers() {
    std::vector<std::vector<std::uint32_t>> users(lifetimes_.trace().buffers().size());
    for (std::uint32_t op = 0; op < points_; ++op)
      for (const std::uint32_t buffer : lifetimes_.needed_by(op)) users[buffer].push_back(op);
    for (std::uint32_t buffer = 0; buffer < users.size(); ++buffer)
      if (!users[buffer].empty()) keep(lifetimes_.trace().buffers()[buffer], users[buffer]);
  }

  /// Adds a buffer that ops use. Unless it was born before the step, its first user makes it and runs first.
  void keep(const Buffer& buffer, const std::vector<std::uint32_t>& users) {
    const bool is_made = !buffer.born_before;
    const std::uint32_t maker = users.front();  // if the step makes the buffer
    const double size = scaled(buffer.size);
    std::optional<std::uint32_t> before;  // whether it is kept at the previous point
    for (std::size_t t = 0; t < points_; ++t) {
      const std::uint32_t kept = program_.variable(0, 1, 0);  // a whole number if the runs are
      program_.add(load_[t], kept, size);
      if (is_made) add_run(load_[t], maker, t, size);
      // It is kept only if it was there at the point before. If the step makes it and it outlives the step, it stays.
      if (is_made || before) {
        const std::uint32_t row = program_.row(is_made && buffer.outlives ? 0 : -LinearProgram::kInfinity, 0);
        program_.add(row, kept, 1);
        if (before) program_.add(row, *before, -1);
        if (is_made && t > 0) add_run(row, maker, t - 1, -1);
      }
      for (const std::uint32_t user : users) {
        if ((is_made && user == maker) || t < first_[user] || t > last_[user]) continue;
        const std::uint32_t row = program_.row(-LinearProgram::kInfinity, 0);
        add_run(row, user, t, 1);
        program_.add(row, kept, -1);
      }
      before = kept;
    }
  }

  const Lifetimes& lifetimes_;
  const Dependencies& dependencies_;
  std::size_t points_;
  double unit_ = 1;  // bytes
  LinearProgram program_;
  std::uint32_t peak_ = 0;
  std::vector<std::size_t> first_, last_;         // by op: the points at which it may run
  std::vector<std::vector<std::uint32_t>> runs_;  // by op, by point from the first one
  std::vector<std::uint32_t> load_;               // by point: the row of the bytes that are live there
};

/// OLLA's order of ops: an integer program chooses it for the least peak (see Formulation). The recorded order stays if
/// the step fits in it or in no order, if the step cannot be reordered (can_be_reordered), if it has more than `ops`
/// ops (the program would be too large for the solver), or if `nodes` nodes of branch and bound find no order with a
/// lower peak. It also stays if the run makes a paper's assumptions (RunSpec::assume). The optimum for some twenty ops
/// is proved in seconds; the authors' solver, Gurobi, is far stronger. The result is the same in every run unless the
/// time limit stops the solver.
///
/// OLLA also places tensors by a second program; here the run's pool places them. Its tensors are buffers, and its
/// control edges are dependencies. A dependency is stated as "by each time, an op has run only if the other one has":
/// this is tighter than in the paper, with the same orders.
///
/// Paper: Steiner, Elhoushi, Kahn and Hegarty, "OLLA: Optimizing the Lifetime and Location of Arrays to Reduce the
/// Memory Usage of Neural Networks", 2022 (arXiv 2210.12924), with the authors' program (facebookresearch/MODel_opt).
class Olla final : public Policy {
 public:
  explicit Olla(const Options& options)
      : ops_{count_of("olla", options, "ops", 200)},
        nodes_{count_of<int>("olla", options, "nodes", 1'000'000'000)},
        time_{options.nanos("time-limit")} {}

  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    if (!spec.assume.name.empty() || !can_be_reordered(trace) || trace.ops().size() > ops_ ||
        simulate_under(trace, spec, {}, false).outcome == Outcome::kOk)
      return {};
    const Lifetimes lifetimes{trace};
    const Dependencies dependencies = dependencies_of(trace);
    if (alive_bound(lifetimes, dependencies) > spec.capacity) return {};  // no order fits
    std::optional<OpOrder> order = Formulation{lifetimes, dependencies}.solve({.time = time_, .nodes = nodes_});
    if (!order || order->peak >= trace.ideal_peak()) return {};
    return std::make_shared<OrderedStep>(trace, step_order(std::move(*order), false));
  }

 private:
  std::size_t ops_;
  int nodes_;
  Nanos time_;
};

const RegisterPolicy kOlla{
    {.name = "olla",
     .kind = PolicyKind::kOrder,
     .summary = "runs the ops of a small step in the order with the least peak, by an integer program",
     .paper = "OLLA: Steiner et al., 2022 (arXiv 2210.12924), without its placement",
     .options = {{"ops", "40", "number", "steps with more ops keep their order"},
                 {"nodes", "20000", "number", "most nodes of branch and bound"},
                 {"time-limit", "60s", "ns", "wall time of the solver"}},
     .make = [](const Options& options) { return std::make_unique<Olla>(options); }}};

}  // namespace
}  // namespace tidepool
