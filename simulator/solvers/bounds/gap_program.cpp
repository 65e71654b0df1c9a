// The bounds "gap-lp" and "gap-cover": the recomputation that a whole step needs, by a linear or an integer program,
// for plans that never swap and may run any op again any number of times.
//
// Take an idle interval of a version (`Gap`): two uses more than one op apart. Either the version is kept all the time
// between them, or its op runs again, which costs the version's share of the op. (The shares of an op's outputs add up
// to its cost, and gaps of one version follow each other, so nothing is paid twice.) The versions kept during an op fit
// beside its working set. If gaps may be kept in part, this is a linear program, and no plan costs less than its
// optimum. The bound is the value that the multipliers of its rows prove by weak duality. Unlike knapsack and min-cut,
// it covers several instants at once. Unlike min-cut, it ignores the inputs of ops that run again. If gaps are kept
// whole or not at all, branch and bound proves more; this relies on the solver.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/linear_program.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/bounds/recompute_bounds.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

constexpr Nanos kLongest{120'000'000'000};  // wall time; multipliers found by then still give a bound
// Limits of branch and bound. Wall time is not limited, so the answer is the same in every run; these limits keep it to
// seconds.
constexpr int kMostNodes = 1'000;
constexpr std::size_t kMostWhole = 1'000;  // gaps; with more, the integer program is left out

/// A version between two uses. Its rows [first, last) are those instants in between at which not everything fits.
struct Gap {
  std::size_t first = 0, last = 0;
  std::int64_t bytes = 0, cost = 0;
};

/// Gaps of replaceable versions, and the instants at which they do not all fit.
class Gaps {
 public:
  Gaps(const RecomputeModel& model, Bytes capacity) : model_{model} {
    collect();
    const std::vector<Bytes> taken = irreplaceable_bytes(model);
    std::vector<std::int64_t> change(taken.size() + 1);
    std::vector<bool> changes(taken.size() + 1);
    for (const Gap& gap : gaps_) {
      change[gap.first] += gap.bytes, change[gap.last] -= gap.bytes;
      changes[gap.first] = changes[gap.last] = true;
    }
    std::vector<std::size_t> before(taken.size() + 1);  // number of rows before each instant
    std::int64_t sum = 0;
    bool same_gaps = false;  // whether the instant has the gaps of the last row
    for (std::size_t i = 0; i < taken.size(); ++i) {
      sum += change[i];
      same_gaps = same_gaps && !changes[i];
      const std::int64_t room = std::max<std::int64_t>((capacity - taken[i]).count(), 0);
      if (sum > room && same_gaps) rows_.back().room = std::min(rows_.back().room, room);
      if (sum > room && !same_gaps) rows_.push_back({sum, room}), same_gaps = true;
      before[i + 1] = rows_.size();
    }
    for (Gap& gap : gaps_) gap.first = before[gap.first], gap.last = before[gap.last];
    std::erase_if(gaps_, [](const Gap& gap) { return gap.first == gap.last; });
  }

  /// A bound on recomputation, in ns. The variables are the bytes kept at each instant, and for each gap the part of
  /// its version that is absent. The bytes kept change only where gaps begin and end, so each gap has just two entries.
  /// @param whole  gaps are kept whole or not at all
  std::int64_t least(bool whole) const {
    if (rows_.empty()) return 0;
    double most_bytes = 1, most_cost = 1;
    for (const Gap& gap : gaps_) {
      most_bytes = std::max(most_bytes, static_cast<double>(gap.bytes));
      most_cost = std::max(most_cost, static_cast<double>(gap.cost));
    }
    LinearProgram program;
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      const std::int64_t more = rows_[i].bytes - (i > 0 ? rows_[i - 1].bytes : 0);
      const double side = static_cast<double>(more) / most_bytes;
      program.row(side, side);
      program.variable(0, static_cast<double>(rows_[i].room) / most_bytes, 0);
      program.add(i, i, 1);
      if (i > 0) program.add(i, i - 1, -1);
    }
    for (const Gap& gap : gaps_) {
      const double cost = static_cast<double>(gap.cost) / most_cost;
      const std::uint32_t absent = whole ? program.integer(0, 1, cost) : program.variable(0, 1, cost);
      const double bytes = static_cast<double>(gap.bytes) / most_bytes;
      program.add(static_cast<std::uint32_t>(gap.first), absent, bytes);
      if (gap.last < rows_.size()) program.add(static_cast<std::uint32_t>(gap.last), absent, -bytes);
    }
    const LinearProgram::Limits limits =
        whole ? LinearProgram::Limits{.nodes = kMostNodes} : LinearProgram::Limits{.time = kLongest};
    const LinearProgram::Solution solution = program.solve(limits);
    const double proved = solution.bound * most_cost;
    if (!(proved > 0)) return 0;
    // Subtract the error that rounding of the coefficients, or the solver's tolerance of zero, may have added.
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(proved * (1 - (whole ? 1e-6 : 1e-9))) - 1);
  }

  std::size_t gaps() const { return gaps_.size(); }
  std::size_t instants() const { return rows_.size(); }

 private:
  void collect() {
    for (std::size_t i = 0; i < model_.items().size(); ++i) {
      const RecomputeModel::Item& item = model_.items()[i];
      if (item.made == RecomputeModel::kNever || !item.replaceable || item.bytes == 0) continue;
      std::int32_t from = item.made;
      const auto until = [&](std::int32_t use) {
        if (use > from + 1)
          gaps_.push_back({static_cast<std::size_t>(from + 1), static_cast<std::size_t>(use), item.bytes, item.cost});
        from = use;
      };
      for (const OpId reader : model_.trace().readers(VersionId{i})) until(static_cast<std::int32_t>(reader.value()));
      if (item.needed == model_.ops()) until(model_.ops());
    }
  }

  /// Adjacent instants with the same gaps, not all of which fit.
  struct Row {
    std::int64_t bytes = 0;  ///< sum of the gaps' bytes
    std::int64_t room = 0;   ///< the least free bytes at these instants
  };
  const RecomputeModel& model_;
  std::vector<Gap> gaps_;
  std::vector<Row> rows_;
};

std::optional<Bound> gap_program(const BoundQuery& query, bool whole) {
  if (!query.remat || query.capacity >= ideal_peak(query.trace, query.assume) || !iterations_are_apart(query))
    return std::nullopt;
  const RecomputeModel model{query.trace, query.assume, RecomputeModel::busiest_stream(query.trace)};
  const Gaps gaps{model, query.capacity};
  if (whole && gaps.gaps() > kMostWhole) return std::nullopt;
  // Recomputation takes a sum of whole durations.
  std::int64_t unit = 0;
  for (std::size_t i = 0; i < query.trace.ops().size(); ++i) unit = std::gcd(unit, model.cost(OpId{i}));
  unit = std::max<std::int64_t>(unit, 1);
  const std::int64_t least = (gaps.least(whole) + unit - 1) / unit * unit;
  if (least == 0) return std::nullopt;
  return Bound{
      .makespan = clock_start(query) + model.work() + Nanos{least},
      .proof = fmt::format("ops that take {} must run again, since not everything fits at {}", to_text(Nanos{least}),
                           counted(static_cast<std::int64_t>(gaps.instants()), "instant")),
      .limited_by = Resource::kRecompute};
}

const RegisterBound kGapProgram{
    {.name = "gap-lp",
     .summary = "what is absent between two uses is run again: a linear program of the step",
     .swap = false,
     .quick = false,
     .steady = true,
     .compute = [](const BoundQuery& query) { return gap_program(query, false); }}};
const RegisterBound kCover{
    {.name = "gap-cover",
     .summary = "the same in whole gaps: the least costly set of values absent between two uses, by branch and bound",
     .swap = false,
     .quick = false,
     .steady = true,
     .compute = [](const BoundQuery& query) { return gap_program(query, true); }}};

}  // namespace
}  // namespace tidepool
