// The base of policies that reverse the step as a chain of stages. They differ only in the order of their steps.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/trace_chain.hpp"

namespace tidepool {

/// Cuts the step into at most a given number of stages (see linearise). `choose` finds an order that fits into the
/// capacity less the buffers from before the step, and the policy executes it. `refine` may first give the stages more
/// options. If all values fit, all are kept. Sizes are sums of bytes: if a pool with addresses cannot place a request,
/// the next policy of the chain answers. O(1) per action.
class ChainPolicy final : public DraftPolicy {
 public:
  using Choose = std::function<ChainSequence(const Chain&, Bytes room)>;
  using Refine = std::function<void(const Trace&, TraceChain&)>;
  ChainPolicy(std::size_t stages, Choose choose, Refine refine = {})
      : stages_{stages}, choose_{std::move(choose)}, refine_{std::move(refine)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    TraceChain chain = linearise(trace, stages_);
    Bytes left = spec.capacity;
    for (const Buffer& buffer : trace.buffers())
      if (buffer.born_before) left -= buffer.size;
    if (cost_of(chain.chain, save_all(chain.chain))->peak <= left) return {};
    if (refine_) refine_(trace, chain);
    draft_ = Draft{actions_of(trace, chain, choose_(chain.chain, std::max(left, Bytes{})))};
    return {};
  }

 private:
  std::size_t stages_;
  Choose choose_;
  Refine refine_;
};

/// Keeps the best of the offered orders. An order that fits is better than one that does not. If neither of two orders
/// fits, the one with the lower peak is better; if both fit or the peaks are equal, the faster one.
class BestOrder {
 public:
  /// @param chain  must outlive this
  BestOrder(const Chain& chain, Bytes room) : chain_{chain}, room_{room} {}

  /// @param sequence  one that cost_of() can execute
  void offer(ChainSequence sequence) {
    const ChainCost cost = *cost_of(chain_, sequence);
    if (!sequence_.empty() && !better(cost, cost_)) return;
    cost_ = cost;
    sequence_ = std::move(sequence);
  }
  ChainSequence take() { return std::move(sequence_); }

 private:
  bool better(const ChainCost& a, const ChainCost& b) const {
    const bool a_fits = a.peak <= room_, b_fits = b.peak <= room_;
    if (a_fits != b_fits) return a_fits;
    if (!a_fits && a.peak != b.peak) return a.peak < b.peak;
    return a.time < b.time;
  }

  const Chain& chain_;
  Bytes room_;
  ChainCost cost_;
  ChainSequence sequence_;
};

}  // namespace tidepool
