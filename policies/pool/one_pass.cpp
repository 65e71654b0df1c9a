#include <string>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/heuristic.hpp"

namespace tidepool {
namespace {

/// Sorts the buffers by a key such as size or life, and places each once, into the lowest or the smallest hole between
/// the buffers placed before it. No order is best for all programs, so by default all ten combinations of order and
/// hole are tried, and the layout with the least height is kept. Each combination reads O(n log n) lists of address
/// ranges, see place_in_order().
/// Compared in: Lamprou et al., "A Practical Approach to Dynamic Storage Allocation", arXiv 2504.04874, section 2.
class OnePass final : public Planner {
 public:
  explicit OnePass(const Options& options) : order_{options.word("order")}, fit_{options.word("fit")} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    const Sections sections{instance};
    BestLayout best{instance, limits};
    for (const PackingOrder each : kPackingOrders) {
      if (order_ != "all" && order_ != to_text(each)) continue;
      const std::vector<std::uint32_t> order = in_order(instance, each);
      if (fit_ != "best" && !best.done()) best.offer(place_in_order(instance, sections, order, Fit::kFirst));
      if (fit_ != "first" && !best.done()) best.offer(place_in_order(instance, sections, order, Fit::kBest));
    }
    return best.take();
  }

 private:
  std::string order_, fit_;
};

const RegisterPool kOnePass{
    {.name = "one-pass",
     .summary = "offline: each buffer once, the largest (or longest, ...) first; the best of ten ways",
     .paper = "folklore; compared in arXiv 2504.04874, section 2",
     .options =
         {{"order", "all", "all|size|size-life|area|life|birth", "which buffer comes first"},
          {"fit", "both", "both|first|best",
           "first: the lowest hole that fits; best: the smallest; both: a layout each way, of which the lower is kept"},
          alignment_option()},
     .make = {},
     .plan = [](const Options& options) { return std::make_unique<OnePass>(options); }}};

}  // namespace
}  // namespace tidepool
