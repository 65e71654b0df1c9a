#include <tuple>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/heuristic.hpp"

namespace tidepool {
namespace {

/// XLA's buffer assignment. GlobalDecreasingSizeBestFitHeap places each buffer into the smallest chunk that is free
/// during its life (lowest offset among equals): once by decreasing size, then lifetime (spatial), once by decreasing
/// lifetime, then size (temporal). ChooseBestHeapAlgorithm keeps the lower heap, spatial if they are equal. The length
/// of a lifetime includes its holes. Equal buffers keep the order of their ids. Values that XLA would colocate are one
/// buffer in a trace.
/// Source: github.com/openxla/xla, xla/service/heap_simulator/heap_simulator.cc and buffer_assignment.cc, 2025.
class Xla final : public Planner {
 public:
  explicit Xla(const Options& options) : order_{options.word("order")} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    const auto spatial = [&](const Item& a, const Item& b) {
      return std::tuple{-a.size, -span_of(instance, a)} < std::tuple{-b.size, -span_of(instance, b)};
    };
    const auto temporal = [&](const Item& a, const Item& b) {
      return std::tuple{-span_of(instance, a), -a.size} < std::tuple{-span_of(instance, b), -b.size};
    };
    const Sections sections{instance};
    BestLayout best{instance, limits};
    if (order_ != "temporal")
      best.offer(place_in_order(instance, sections, order_items(instance, spatial), Fit::kBest));
    if (order_ != "spatial" && !best.done())
      best.offer(place_in_order(instance, sections, order_items(instance, temporal), Fit::kBest));
    return best.take();
  }

 private:
  std::string order_;
};

const RegisterPool kXla{
    {.name = "xla",
     .summary = "offline: XLA's best fit by decreasing size and by decreasing lifetime, the lower of the two",
     .paper = "github.com/openxla/xla, heap_simulator.cc: GlobalDecreasingSizeBestFitHeap, ChooseBestHeapAlgorithm",
     .options = {{"order", "both", "both|spatial|temporal",
                  "by size, by lifetime, or a layout each way, of which the lower is kept"},
                 alignment_option()},
     .make = {},
     .plan = [](const Options& options) { return std::make_unique<Xla>(options); }}};

}  // namespace
}  // namespace tidepool
