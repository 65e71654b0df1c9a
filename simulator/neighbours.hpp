// Which versions are next to each other in the graph of what is computed from what.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/state.hpp"

namespace tidepool {

/// The parents and children of every root version as View::for_each_parent and for_each_child name them, each once, in
/// flat arrays: for policies that walk the graph often. A neighbour counts from the op on by which it became one.
/// O(versions + uses) to make.
class Neighbours {
 public:
  enum class Side : std::uint8_t { kParents, kChildren };

  explicit Neighbours(const Trace& trace) {
    parents_.start.reserve(trace.versions().size() + 1);
    children_.start.reserve(trace.versions().size() + 1);
    seen_.assign(trace.versions().size(), ~std::uint32_t{0});
    for (std::size_t i = 0; i < trace.versions().size(); ++i) {
      const VersionId v{i};
      parents_.start.push_back(static_cast<std::uint32_t>(parents_.edges.size()));
      children_.start.push_back(static_cast<std::uint32_t>(children_.edges.size()));
      if (trace.version(v).kind == VersionKind::kView) continue;
      begin(v, 0);
      if (const OpId producer = trace.version(v).producer; producer.valid()) add_inputs(trace, producer);
      for (const OpId viewer : trace.viewers(v)) add_inputs(trace, viewer);
      begin(v, 1);
      for (const OpId reader : trace.readers(v))
        for (const Use& use : trace.uses(reader))
          if (use.out.valid()) add(children_, trace.root(use.out), reader);
    }
    parents_.start.push_back(static_cast<std::uint32_t>(parents_.edges.size()));
    children_.start.push_back(static_cast<std::uint32_t>(children_.edges.size()));
    seen_ = {};
  }

  /// Calls visit(VersionId) for every neighbour of `v` on one side that an op up to `op` made one.
  template <class Visit>
  void for_each(Side side, VersionId v, OpId op, Visit visit) const {
    const Edges& all = side == Side::kParents ? parents_ : children_;
    for (std::uint32_t i = all.start[v.index()]; i < all.start[v.index() + 1] && all.edges[i].since <= op; ++i)
      visit(all.edges[i].to);
  }

 private:
  struct Edge {
    VersionId to;
    OpId since;
  };
  struct Edges {
    std::vector<std::uint32_t> start;  // by version, and one more
    std::vector<Edge> edges;
  };

  void begin(VersionId v, std::uint32_t side) {
    mark_ = 2 * v.value() + side;
    seen_[v.index()] = mark_;
  }
  void add(Edges& to, VersionId neighbour, OpId op) {
    if (std::exchange(seen_[neighbour.index()], mark_) != mark_) to.edges.push_back({neighbour, op});
  }
  void add_inputs(const Trace& trace, OpId op) {
    for (const Use& use : trace.uses(op))
      if (use.in.valid()) add(parents_, trace.root(use.in), op);
  }

  Edges parents_, children_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t mark_ = 0;
};

}  // namespace tidepool
