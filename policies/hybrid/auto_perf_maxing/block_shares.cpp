#include "policies/hybrid/auto_perf_maxing/block_shares.hpp"

#include <algorithm>
#include <numeric>

#include "simulator/solvers/bounds/linear_program.hpp"

namespace tidepool {
namespace {

double ratio(Bytes part, Bytes whole) {
  return static_cast<double>(part.count()) / static_cast<double>(std::max<std::int64_t>(whole.count(), 1));
}

/// Gives the ops of a block their fates, in several passes over the ops.
class Filling {
 public:
  explicit Filling(const std::vector<BlockOp>& ops) : ops_{ops}, fates_(ops.size(), Fate::kKeep), open_(ops.size()) {
    for (std::size_t i = 0; i < ops.size(); ++i) open_[i] = !ops[i].fixed;
  }

  /// Gives the fate to each op, in this order, that fits into the rest of `gap` bytes. @return the bytes of these ops
  /// @param beyond  whether one more op gets the fate: the smallest with at least 95 % of the bytes still missing
  double fill(double gap, const std::vector<std::size_t>& order, Fate fate, bool beyond) {
    double placed = 0;
    for (const std::size_t i : order)
      if (placed < gap && open_[i] && size(i) <= gap - placed) placed += give(i, fate);
    if (const double rest = gap - placed; rest > 0 && beyond) {
      std::optional<std::size_t> least;
      for (const std::size_t i : order)
        if (open_[i] && size(i) >= rest * 0.95 && (!least || std::pair{size(i), i} < std::pair{size(*least), *least}))
          least = i;
      if (least) placed += give(*least, fate);
    }
    return placed;
  }

  std::vector<Fate> take() { return std::move(fates_); }

 private:
  double size(std::size_t i) const { return static_cast<double>(ops_[i].saved.count()); }
  double give(std::size_t i, Fate fate) {
    open_[i] = false;
    fates_[i] = fate;
    return size(i);
  }

  const std::vector<BlockOp>& ops_;
  std::vector<Fate> fates_;
  std::vector<bool> open_;
};

}  // namespace

std::optional<std::vector<BlockShares>> share_out(const std::vector<BlockLoad>& blocks, const BlockLimits& limits) {
  if (blocks.empty()) return std::vector<BlockShares>{};
  LinearProgram program;
  std::vector<std::uint32_t> keep, recompute, offload;
  const auto of_budget = [&](Bytes bytes) { return ratio(bytes, limits.budget); };
  for (const BlockLoad& block : blocks) {
    const bool last = keep.size() + 1 == blocks.size();
    const double copies = ratio(std::min(limits.to_host, limits.to_device), block.activations);
    keep.push_back(program.variable(std::min(1.0, ratio(block.fixed, block.activations)), 1, 0));
    recompute.push_back(program.variable(0, 1, 1));
    offload.push_back(program.variable(0, last ? 0 : std::min(1.0, copies), 0));
    const std::uint32_t split = program.row(1, 1);
    for (const std::uint32_t each : {keep.back(), recompute.back(), offload.back()}) program.add(split, each, 1);
  }
  const auto fits = [&](Bytes besides, std::size_t kept, bool and_offloaded) {
    const std::uint32_t row = program.row(-LinearProgram::kInfinity, 1 - of_budget(besides));
    for (std::size_t i = 0; i < kept; ++i) program.add(row, keep[i], of_budget(blocks[i].activations));
    if (and_offloaded && kept > 0) program.add(row, offload[kept - 1], of_budget(blocks[kept - 1].activations));
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) fits(blocks[i].activations + blocks[i].backward_temporary, i, true);
  fits(limits.head, blocks.size(), false);
  const std::uint32_t host = program.row(-LinearProgram::kInfinity, of_budget(limits.host));
  for (std::size_t i = 0; i < blocks.size(); ++i) program.add(host, offload[i], of_budget(blocks[i].activations));

  const LinearProgram::Solution solution = program.solve();
  if (solution.status != LinearProgram::Status::kOptimal) return {};
  std::vector<BlockShares> shares;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    shares.push_back({solution.x[keep[i]], solution.x[recompute[i]], solution.x[offload[i]]});
  return shares;
}

std::vector<Fate> follow_shares(const std::vector<BlockOp>& ops, const BlockShares& shares) {
  double all = 0;
  for (const BlockOp& op : ops) all += static_cast<double>(op.saved.count());
  std::vector<std::size_t> ranked(ops.size());
  std::iota(ranked.begin(), ranked.end(), std::size_t{});
  std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<double>(ops[a].duration.count()) * static_cast<double>(ops[b].saved.count()) >
           static_cast<double>(ops[b].duration.count()) * static_cast<double>(ops[a].saved.count());
  });
  const std::vector<std::size_t> cheapest{ranked.rbegin(), ranked.rend()};
  std::vector<std::size_t> offloadable;
  std::copy_if(ranked.begin(), ranked.end(), std::back_inserter(offloadable),
               [&](std::size_t i) { return ops[i].offloadable; });
  Filling filling{ops};
  const double offloaded = filling.fill(shares.offload * all, offloadable, Fate::kOffload, false);
  const double recomputed = filling.fill((1 - shares.offload - shares.keep) * all, cheapest, Fate::kRecompute, false);
  filling.fill(all - recomputed - offloaded - shares.keep * all, cheapest, Fate::kRecompute, true);
  return filling.take();
}

}  // namespace tidepool
