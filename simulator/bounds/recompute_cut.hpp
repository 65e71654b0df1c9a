// The least recomputation after one instant, as a minimum cut with a price on memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/bounds/max_flow.hpp"
#include "simulator/bounds/recompute_model.hpp"

namespace tidepool {

/// A choice of what stays and what is run again from one instant on: everything that the program needs later is either
/// resident, or made by ops that run again, whose inputs, too, are either.
struct CutPoint {
  std::int64_t cost = 0;   ///< of the ops that run again, each once
  std::int64_t bytes = 0;  ///< of what stays, beside what the instant itself holds
};

/// The moment that op `instant` has run for the first time, any plan without swaps has a set R of versions in memory,
/// beside the op's own working set, that fits into what the capacity leaves, and from then on runs a set X of ops
/// again, such that whatever the program needs later is in R or made by X, and so is whatever X reads. So the least
/// cost of such an X is a bound on what any plan recomputes after the instant. With a price on every byte of R instead
/// of the limit (Lagrange), the best pair is a minimum cut: source -> op at its cost, op -> version at its price,
/// version
/// -> ops that read it and, if the program needs it, -> sink without limit. For every price, cut - price * limit is a
/// bound; the best price is found by intersecting the lines of the cheapest cuts known to both sides of the limit.
/// Flows resume where those at a lower price ended.
class RecomputeCut {
 public:
  /// @param model  outlives the cut
  /// @param until  counts only what is run again before this op, for what ops up to it need; none: up to the end
  RecomputeCut(const RecomputeModel& model, std::int32_t instant, std::optional<std::int32_t> until = {});

  /// Bytes that what the program needs later takes: with that much room nothing is run again.
  std::int64_t needed_bytes() const { return needed_bytes_; }

  struct Answer {
    std::int64_t bound = 0;  ///< ns; no plan recomputes less after the instant
    bool feasible = true;    ///< false: no plan exists at all
    double price = 0;        ///< ns per byte of the best cut
    int flows = 0;           ///< how many were sought
  };
  /// @param room        bytes that the capacity leaves beside the instant's working set
  /// @param price       where to begin, in ns per byte; 0: unknown
  /// @param unless_over gives up where this instant cannot prove more than that many ns
  Answer bound(std::int64_t room, double price = 0, std::int64_t unless_over = 0);

  /// The least costly choice that the last bound() came across and that fits. None is known if nothing must be run
  /// again, or nothing fits.
  struct Choice {
    bool known = false;
    CutPoint point;
    std::vector<VersionId> resident;  ///< R
    std::vector<OpId> again;          ///< X, in program order
  };
  Choice choice() const { return choice_; }

 private:
  struct Node {
    VersionId version;
    std::uint32_t op = 0;  ///< index in ops_; of what is not replaceable, none
  };
  struct Cut {
    std::int64_t value = 0;  ///< scaled
    CutPoint point;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  void gather(std::int32_t until);
  MaxFlow network(std::int64_t scale, std::vector<MaxFlow::Edge>& price_edges) const;
  Cut solve(std::int64_t price);
  bool stays(const MaxFlow& flow, std::uint32_t i) const;
  CutPoint fewest_bytes(std::int64_t room);
  CutPoint run_all_again();
  void note_choice(const MaxFlow& flow, const CutPoint& point);
  static MaxFlow::Node version_node(std::uint32_t i) { return 2 + i; }
  MaxFlow::Node op_node(std::uint32_t i) const { return static_cast<MaxFlow::Node>(2 + versions_.size() + i); }

  const RecomputeModel& model_;
  std::int32_t instant_;
  std::vector<Node> versions_;
  std::vector<OpId> ops_;
  std::vector<std::int64_t> costs_;      // by index in ops_
  std::vector<std::uint32_t> index_;     // by version: in versions_
  std::vector<std::uint32_t> op_index_;  // by op: in ops_
  std::vector<bool> needed_;             // by index in versions_
  std::int64_t needed_bytes_ = 0, all_bytes_ = 0, all_cost_ = 0, lasting_bytes_ = 0;
  int shift_ = 0;  // prices and costs are scaled by 2^shift_
  MaxFlow flow_{2};
  std::vector<MaxFlow::Edge> price_edges_;  // by index in versions_
  MaxFlow::State start_, resumed_;          // flows at price 0 and at resumed_price_
  std::int64_t resumed_price_ = 0, price_ = 0;
  Choice choice_;
};

}  // namespace tidepool
