#include "simulator/engine/planned_pool.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/heuristic.hpp"

namespace tidepool {
namespace {

/// TFLite's two greedy planners. By size: buffers in decreasing order of size (ties by id), each into the smallest gap
/// between those already placed that live at the same time, else above them. By breadth: see place_by_breadth.
/// Source: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv 2001.03288, sections 4
/// and 5; tensorflow/lite/delegates/gpu/common/memory_management/greedy_by_size_assignment.cc (GreedyBySizeAssignment)
/// and greedy_by_breadth_assignment.cc, 2025.
class TfLite final : public Planner {
 public:
  explicit TfLite(const Options& options) : greedy_{options.word("greedy")} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    const auto by_size = [](const Item& a, const Item& b) { return a.size > b.size; };
    BestLayout best{instance, limits};
    if (greedy_ != "breadth") best.offer(place_in_order(instance, order_items(instance, by_size), Fit::kBest));
    if (greedy_ != "size" && !best.done()) best.offer(place_by_breadth(instance));
    return best.take();
  }

 private:
  std::string greedy_;
};

const RegisterPool kTflite{
    {.name = "tflite",
     .summary = "offline: TFLite's greedy by size and greedy by breadth, the lower of the two",
     .paper = "Pisarchyk & Lee, arXiv 2001.03288; tensorflow/lite/delegates/gpu/common/memory_management",
     .options = {{"greedy", "both", "both|size|breadth",
                  "by size, by breadth, or a layout each way, of which the lower is kept"},
                 alignment_option()},
     .make = {},
     .plan = [](const Options& options) { return std::make_unique<TfLite>(options); }}};

}  // namespace
}  // namespace tidepool
