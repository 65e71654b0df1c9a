// The least recomputation after one instant, as a minimum cut with a price on memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/solvers/bounds/max_flow.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"

namespace tidepool {

/// A choice of versions to keep and ops to run again from one instant on. Everything that the program needs later is
/// resident or made by an op that runs again, and so are the inputs of these ops.
struct CutPoint {
  std::int64_t cost = 0;   ///< sum over the ops that run again, each once
  std::int64_t bytes = 0;  ///< sum over the versions that stay, without the working set of the instant
};

/// When op `instant` has run for the first time, any plan without swaps has a set R of versions in memory
/// besides the op's working set, and R fits in the rest of the capacity. From then on the plan runs a set X of
/// ops again. Whatever the program needs later, and whatever X reads, is in R or made by X. So the least cost
/// of such an X is a bound on the recomputation of any plan after the instant. Replace the limit on R by a
/// price on each of its bytes (Lagrange). Then the best pair is a minimum cut of the network source -> op at
/// its cost, op -> version at its price, version -> ops that read it, and version -> sink without limit if the
/// program needs it. For every price, cut - price * limit is a bound; the best price is found by intersecting
/// the lines of the cheapest known cuts on both sides of the limit. Each flow starts from the last one at a
/// lower price.
class RecomputeCut {
 public:
  /// @param model  outlives the cut
  /// @param until  counts only ops that run again before this op, for uses up to it; none: up to the end
  RecomputeCut(const RecomputeModel& model, std::int32_t instant, std::optional<std::int32_t> until = {});

  /// Bytes of all versions beside the working set that the program needs later. If they all fit, nothing runs again.
  std::int64_t needed_bytes() const { return needed_bytes_; }
  /// The fewest bytes that must stay, whatever runs again. One flow.
  std::int64_t least_bytes() const;

  struct Content {
    VersionId version;
    bool needed = false;  ///< by the program; else only ops that run again may read it
  };
  /// All content that may stay.
  std::vector<Content> contents() const;

  struct Answer {
    std::int64_t bound = 0;  ///< ns: no plan recomputes less after the instant
    bool feasible = true;    ///< false: no plan exists at all
    double price = 0;        ///< ns per byte of the best cut
    int flows = 0;           ///< number of flows with a price that were computed; 1 if no plan exists
  };
  /// @param room        bytes of the capacity beside the instant's working set
  /// @param price       first price to try, in ns per byte; 0: unknown
  /// @param unless_over  in ns; gives up if this instant cannot prove more
  Answer bound(std::int64_t room, double price = 0, std::int64_t unless_over = 0);

  /// The cheapest choice that fits, of those that the last bound() found. `known` is false if nothing must run again,
  /// or nothing fits.
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
    std::uint32_t op = 0;  ///< index in ops_; none if the version is not replaceable
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
  MaxFlow flow_of_bytes() const;
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
