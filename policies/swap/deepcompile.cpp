#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {
namespace {

/// DeepCompile's adaptive offloading of optimizer states, in DeepSpeed. Let mem(k) be the bytes while op k runs without
/// any optimizer state, and M = (1 - margin) * capacity. States form a queue.
///   forward   before op k, while max mem(0..k) and the bytes of the states in the queue exceed M together, the next
///             state leaves the queue: op k waits until the copy of that state to the host has ended and it is freed.
///             All of these copies begin before the first op, in the order of the queue.
///   backward  after op k, while max mem(k..end of the phase), the bytes of states swapped in so far and those of the
///             next one together are below M, the next one is swapped in, in the order in which they left.
///   step      states that are still on the host are swapped in before the first op that uses a state.
/// As in the authors' code, the choice of states that leave ignores the backward phase, and the test of the backward
/// phase does not count states that never left. So the rule may run out of memory in the backward phase or in the
/// optimizer, and may be chained ("deepcompile+lru-swap").
///
/// The states are all optimizer states from before the step that are first used after the backward phase has begun:
/// Adam's two moments and copies of parameters in full precision. The queue has them in the order of their buffers,
/// which frameworks allocate parameter by parameter, as the code does. The code measures mem(k) in a run with all
/// states on the host; here it is that of the trace. The step is one graph forward and one backward, so the code's
/// rules for graph breaks are not needed. The code's copies share a stream, and the whole step of the optimizer waits
/// for them; here each direction has a lane, and an op of the optimizer waits for its own states. O(uses + states).
///
/// Paper: Tanaka et al., "DeepCompile: A Compiler-Driven Approach to Optimizing Distributed Deep Learning Training",
/// 2025 (arXiv 2504.09983); the rule is offload_opt_states_inc in DeepSpeed, compile/passes/offload_adam_states.py.
class DeepCompile final : public Policy {
 public:
  explicit DeepCompile(double margin) : margin_{margin} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const std::uint32_t backward = first_backward_op(trace);
    const States states = find_states(trace, backward);
    CopyDraft copies{trace};
    if (states.all.empty() || backward == 0) return copies.take();
    const Bytes most{static_cast<std::int64_t>(static_cast<double>(spec.capacity.count()) * (1 - margin_))};
    std::vector<Bytes> need = live_bytes(trace);
    for (Bytes& bytes : need) bytes -= states.bytes;

    std::size_t left = 0;
    std::vector<std::uint32_t> gone;  // by state that leaves: the op before which it is freed
    Bytes peak, queue = states.bytes;
    for (std::uint32_t op = 0; op < backward; ++op) {
      peak = std::max(peak, need[op]);
      for (; left < states.all.size() && peak + queue > most; ++left) {
        queue -= trace.size(states.all[left]);
        gone.push_back(op);
      }
    }
    for (std::size_t i = 0; i < left; ++i) copies.copy_out(0, states.all[i]);
    for (std::size_t i = 0; i < left; ++i) {
      copies.await(gone[i], states.all[i]);
      copies.release(gone[i], states.all[i]);
    }

    for (std::uint32_t op = states.step - 1; op > backward; --op) need[op - 1] = std::max(need[op - 1], need[op]);
    std::size_t next = 0;
    Bytes back;
    const auto reload = [&](std::uint32_t before) {
      back += trace.size(states.all[next]);
      copies.copy_back(before, states.all[next++]);
    };
    for (std::uint32_t op = backward; op < states.step; ++op)
      while (next < left && need[op] + back + trace.size(states.all[next]) < most) reload(op + 1);
    while (next < left) reload(states.step);
    return copies.take();
  }

 private:
  struct States {
    std::vector<VersionId> all;  ///< initial versions, in the order of their buffers
    Bytes bytes = {};
    std::uint32_t step = kNever;  ///< the first op that uses one
  };

  static States find_states(const Trace& trace, std::uint32_t backward) {
    std::vector<std::uint32_t> first(trace.buffers().size(), kNever);
    for (std::uint32_t op = 0; op < trace.ops().size(); ++op)
      for (const Use& use : trace.uses(OpId{op})) {
        const BufferId buffer = trace.version(use.in.valid() ? use.in : use.out).buffer;
        first[buffer.index()] = std::min(first[buffer.index()], op);
      }
    States states;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Buffer& buffer = trace.buffers()[i];
      if (buffer.kind != BufferKind::kOptimizerState || !buffer.born_before || buffer.size == Bytes{}) continue;
      if (first[i] == kNever || first[i] <= backward) continue;
      states.all.push_back(trace.first_version(BufferId{i}));
      states.bytes += buffer.size;
      states.step = std::min(states.step, first[i]);
    }
    return states;
  }

  double margin_;
};

const RegisterPolicy kDeepcompile{
    {.name = "deepcompile",
     .kind = PolicyKind::kSwap,
     .summary = "swaps out optimizer state until the forward phase fits, and swaps it in before the optimizer runs",
     .paper = "DeepCompile: Tanaka et al., 2025 (arXiv 2504.09983), adaptive offloading; its code in DeepSpeed",
     .options = {{"margin", "0.2", "number", "share of the capacity that is left free (MARGIN)"}},
     .make = [](const Options& options) {
       const double margin = options.number("margin");
       expect(margin >= 0 && margin < 1, "deepcompile", options, "margin", "0 to below 1");
       return std::make_unique<DeepCompile>(margin);
     }}};

}  // namespace
}  // namespace tidepool
