#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/feature_maps.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {
namespace {

/// FlashNeuron's linear tensor selection. It offloads tensors that the forward phase leaves for the backward phase, in
/// the order in which they appear, until the sum of the others is below
///   capacity - bytes that exist before and after the step - W,
/// where W is the largest sum of other bytes that one op uses. They are swapped out after their last use in the forward
/// phase. From the first backward op on, they come back in the order of their reads, each as soon as there is room
/// for it and for W. On a remaining shortage, the version with the latest next read is swapped out.
///
/// Paper: Bae et al., "FlashNeuron: SSD-Enabled Large-Batch Training of Very Deep Neural Networks", FAST 2021: the
/// first phase of its offloading scheduler, with details as in G10's model of it (platformxlab/G10, src/analysis.cc,
/// scheduling_offload_flashneuron). The second phase is left out; it compresses tensors if offloading takes longer
/// than the forward phase. Copies go to the host. With `wait`, as in G10's model, the backward phase begins when
/// everything has been offloaded; without it, an op waits only for a place that it needs. FlashNeuron's allocator,
/// which puts offloaded tensors at the other end of the memory, would be a pool.
///
/// Cost: O(uses + gaps * ops) at worst.
class FlashNeuron final : public SwapOutLeast<FurthestFirst> {
 public:
  explicit FlashNeuron(const Options& options) : wait_{options.flag("wait")} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty() || trace.ideal_peak() <= spec.capacity) return {};
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps(trace, Bytes{1}, spec.assume);
    const Bytes working = largest_working_set(trace, spec.assume);
    const std::vector<std::uint32_t> selected =
        select(gaps, feature_maps(trace, gaps), spec.capacity - persistent(trace) - working);
    const std::uint32_t backward = first_backward_op(trace);
    const std::vector<PlannedGap> planned =
        schedule(gaps, selected, load_without(circle, gaps, selected), spec.capacity - working, backward);
    std::vector<Action> draft = draft_of(gaps, planned, circle.size());
    if (wait_)
      for (const std::uint32_t i : selected)
        if (gaps[i].release < backward) draft.push_back({Verb::kAwait, OpId{backward}, gaps[i].out.value(), {}, {}});
    std::stable_sort(draft.begin(), draft.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
    return draft;
  }

 private:
  static bool is_persistent(const Buffer& buffer) { return buffer.born_before && buffer.outlives; }

  static Bytes persistent(const Trace& trace) {
    Bytes sum;
    for (const Buffer& buffer : trace.buffers())
      if (is_persistent(buffer)) sum += buffer.size;
    return sum;
  }

  static Bytes largest_working_set(const Trace& trace, const Assumptions& assume) {
    Bytes largest;
    for (std::size_t op = 0; op < trace.ops().size(); ++op) {
      const WorkingSet set = working_set(trace, assume, OpId{op});
      Bytes bytes = set.bytes;
      for (const VersionId v : set.held)
        if (is_persistent(trace.buffer(trace.version(v).buffer))) bytes -= trace.size(v);
      largest = std::max(largest, bytes);
    }
    return largest;
  }

  /// @param maps  in the order in which they are due
  static std::vector<std::uint32_t> select(const std::vector<Gap>& gaps, std::vector<std::uint32_t> maps, Bytes room) {
    Bytes kept;
    for (const std::uint32_t i : maps) kept += gaps[i].size;
    const auto appears = [&](std::uint32_t i) { return gaps[i].made == Gap::kBefore ? 0 : gaps[i].made + 1; };
    std::stable_sort(maps.begin(), maps.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return appears(a) < appears(b); });
    std::size_t count = 0;
    for (; count < maps.size() && kept >= room; ++count) kept -= gaps[maps[count]].size;
    maps.resize(count);
    return maps;
  }

  static std::vector<PlannedGap> schedule(const std::vector<Gap>& gaps, std::vector<std::uint32_t> selected,
                                          std::vector<Bytes> load, Bytes limit, std::uint32_t backward) {
    std::sort(selected.begin(), selected.end(), [&](std::uint32_t a, std::uint32_t b) {
      return gaps[a].due != gaps[b].due ? gaps[a].due < gaps[b].due : a < b;
    });
    std::vector<PlannedGap> planned;
    std::uint32_t op = backward;
    for (const std::uint32_t i : selected) {
      const Gap& gap = gaps[i];
      op = std::max(op, gap.release + 1);
      while (op < gap.due && load[op] + gap.size > limit) ++op;
      op = std::min(op, gap.due);
      planned.push_back({i, op, 0});
      for (std::uint32_t k = op; k < gap.due; ++k) load[k] += gap.size;
    }
    return planned;
  }

  bool wait_;
};

const RegisterPolicy kFlashneuron{
    {.name = "flashneuron",
     .kind = PolicyKind::kSwap,
     .summary = "offloads the tensors that appear first until the others fit; without compression, to the host",
     .paper = "FlashNeuron: Bae et al., FAST 2021, first phase of its scheduler",
     .options = {{"wait", "off", "on/off", "the backward phase begins when everything has been offloaded"}},
     .make = [](const Options& options) { return std::make_unique<FlashNeuron>(options); }}};

}  // namespace
}  // namespace tidepool
