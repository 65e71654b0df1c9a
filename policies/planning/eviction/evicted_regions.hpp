// The evicted neighbourhood of a resident version: its evicted ancestors and descendants.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "simulator/state.hpp"

namespace tidepool {

/// The region of a resident version in one direction: the absent versions that are reachable through absent versions
/// only. Regions are not stored. A region is found when its cost is needed, because regions change far more often than
/// their cost is needed; lower bounds tell which regions need not be found.
///
/// The regions are those of the DTR authors' simulator, which updates them at the events of a run: an evicted version
/// joins the regions that it borders on, and the regions around a computed version are found again. These regions
/// differ from those of the true graph only while an op waits for its inputs. The op's outputs, and the cost that the
/// op adds to a base that it views, then count only in regions that were found again since the op began to wait.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, appendix (evicted neighborhood e*).
class EvictedRegions {
 public:
  enum class Side : std::uint8_t { kParents, kChildren };

  void start(const View& view);
  /// `op` begins to wait for the inputs of its first run. O(uses of the op), or more if it views an absent version.
  void begun(const View& view, OpId op);
  /// O(1), but O(uses in and around the region of parents) if the outputs of a waiting op count already among the
  /// children of `v`.
  void dropped(const View& view, VersionId v);
  /// O(versions), and while an op waits O(uses in and around the regions of parents of the versions and of the op, and
  /// the regions of children of the versions if the op views an absent version).
  void computed(const View& view, std::span<const VersionId> versions);

  /// The sum of costs in the region of a resident version. O(uses in and around the region).
  Nanos cost(const View& view, Side side, VersionId v);
  /// Calls inside(VersionId, Nanos cost) for each version of the region of a resident version until it returns false.
  void visit(const View& view, Side side, VersionId v, const std::function<bool(VersionId, Nanos)>& inside);
  /// The versions whose region on one of these sides may have become cheaper since the last call, some of them twice;
  /// lower bounds of all other versions stay valid. O(uses in and around the regions of computed versions).
  void take_cheaper(const View& view, std::initializer_list<Side> sides, std::vector<VersionId>& out);

  /// Makes bound() valid for all versions. O(all uses).
  void find_bounds(const View& view);
  /// A lower bound of cost() at the time of find_bounds(): the costliest path through the region. On the side of
  /// children, each op on the path counts with all of its absent outputs.
  Nanos bound(const View& view, Side side, VersionId v) const;

  /// Number of uses visited so far, as a measure of the work of searches.
  std::int64_t looked_at() const { return looked_at_; }

 private:
  struct Node {
    std::uint32_t mark = 0;  // the last walk that visited it
    bool resident = false;
    bool computed = false;            // whether it is in computed_
    std::uint32_t above_waiting = 0;  // the last search for ancestors of the waiting op that found it
    std::uint32_t sees = 0;           // the number of the waiting op, if that op's outputs count among its children
    std::array<std::uint32_t, 2> outdated = {};  // by side: the number of the waiting op, if the base that the op views
                                                 // still counts with its old cost
  };
  static std::size_t index(Side side) { return static_cast<std::size_t>(side); }
  static Side other(Side side) { return side == Side::kParents ? Side::kChildren : Side::kParents; }

  /// Calls inside(v) for every absent version that can be reached from `bases` through absent versions, and at_edge(v)
  /// for every resident version next to these or to a base; each once, and none for a base. Only edges of ops below
  /// `end` count. Ends when inside(v) returns false; inside(v) may return nothing.
  template <class Inside, class AtEdge>
  void walk(const Trace& trace, Side side, std::span<const VersionId> bases, std::uint32_t end, Inside inside,
            AtEdge at_edge);
  template <class Inside>
  void walk_region(const View& view, Side side, VersionId v, Inside inside);
  template <class AtOp>
  static void for_each_op(const Trace& trace, Side side, VersionId v, std::uint32_t end, AtOp at_op);
  /// One past the last op whose edges count in all regions.
  std::uint32_t known_to_all(const View& view) const { return view.op().value() + (waits_ ? 0 : 1); }
  void find_anew(const View& view, std::span<const VersionId> versions);

  std::vector<Node> nodes_;              // by version
  std::vector<std::uint32_t> op_marks_;  // by op: the last walk that visited it
  std::uint32_t mark_ = 0;
  std::vector<VersionId> reached_;  // versions that a walk has reached
  bool waits_ = false;              // an op waits: it has begun and not run
  std::uint32_t waiting_ = 0;       // number of that op, counted from 1
  std::uint32_t above_waiting_ = 0;
  VersionId viewed_;           // the absent base that the waiting op views
  Nanos viewed_cost_;          // cost of that base before the view
  std::vector<Nanos> above_;   // by op: bound for each of its outputs
  std::vector<Nanos> below_;   // by op: bound for each of its inputs
  std::uint32_t bounded_ = 0;  // one past the last op with valid bounds
  std::int64_t looked_at_ = 0;
  std::vector<VersionId> computed_;  // versions computed since the last take_cheaper(), each once
};

}  // namespace tidepool
