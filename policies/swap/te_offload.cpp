#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Activation offloading by layers, of Transformer Engine (get_cpu_offload_context) and Megatron-LM's
/// --cpu-offloading-num-layers. The tensors that the first k of n layers save for the backward phase go to the host,
/// whatever the capacity; parameters, buffers of modules and small tensors stay. A copy begins when its tensor is
/// saved. For i = 0 to k - 1: before layer n - k + i runs forward, the compute stream waits for all copies of layer i,
/// whose tensors then leave the device. Layer i is swapped in when layer n - 1 - k + i begins its backward, and the
/// backward of layer i waits for all of its swap-ins. So the activations of about n - k layers are on the device at any
/// time.
///
/// A tensor is saved by the first op that reads it forward or, if none does, when it is made; it belongs to that op's
/// layer. Layers are blocks (see find_blocks). If a layer is swapped in when its own backward begins (k = n - 1),
/// each op waits only for the tensors that it reads. Transformer Engine counts elements, not bytes, for `least`, and
/// its copies in both directions share one stream; here each direction has its own lane. O(uses) to plan.
/// Source: Transformer Engine (2025), transformer_engine/pytorch/cpu_offload.py, DefaultOffloadSynchronizer.
class TeOffload final : public Policy {
 public:
  /// @param layers  number of offloaded layers; 0: all but the last
  TeOffload(std::size_t layers, Bytes least) : layers_{layers}, least_{least} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec&) override {
    const Layers layers = find_layers(trace);
    const NetworkBlocks blocks = find_blocks(trace, layers);
    const std::size_t all = blocks.size();
    if (all < 2) return {};
    const std::size_t offloaded = layers_ == 0 ? all - 1 : std::min(layers_, all - 1);
    struct Pack {
      std::uint32_t op;  ///< op that saves the tensor
      std::size_t layer;
      Saved saved;
    };
    std::vector<Pack> packs;
    for (const Kept& kept : layers.kept) {
      const std::uint32_t op = saved_by(trace, kept.saved);
      const std::size_t layer = blocks.of_op[op];
      if (layer < offloaded && trace.size(kept.saved.version) >= least_) packs.push_back({op, layer, kept.saved});
    }
    std::stable_sort(packs.begin(), packs.end(), [](const Pack& a, const Pack& b) { return a.op < b.op; });
    CopyDraft copies{trace};
    for (const auto& [op, layer, saved] : packs) copies.copy_out(op + 1, saved.version);
    for (const auto& [op, layer, saved] : packs) {
      const std::uint32_t gone = std::max(blocks.blocks[all - offloaded + layer].first, saved.last_forward + 1);
      copies.await(gone, saved.version);
      copies.release(gone, saved.version);
      const NetworkBlock& trigger = blocks.blocks[all - 1 - offloaded + layer];
      const std::uint32_t back = std::max(std::min(trigger.backward, saved.first_again), gone + 1);
      copies.copy_back(back, saved.version);
      if (const std::uint32_t own = blocks.blocks[layer].backward; own > back && own != kNever)
        copies.await(own, saved.version);
    }
    return copies.take();
  }

 private:
  static std::uint32_t saved_by(const Trace& trace, const Saved& saved) {
    const auto readers = trace.readers(saved.version);
    const bool forward = !readers.empty() && readers.front().value() <= saved.last_forward;
    return forward ? readers.front().value() : saved.made;
  }

  std::size_t layers_;
  Bytes least_;
};

const RegisterPolicy kTeOffload{
    {.name = "te-offload",
     .kind = PolicyKind::kSwap,
     .summary =
         "copies the tensors that the first layers save to the host, and back some layers before they are needed",
     .paper = "Transformer Engine, cpu_offload.py (2025); Megatron-LM, --cpu-offloading-num-layers",
     .options = {{"layers", "0", "number",
                  "offloaded layers (num_layers), at most all but the last; 0: all but the last"},
                 {"least", "1MiB", "bytes", "smaller tensors stay (min_tensor_size_to_offload)"}},
     .make = [](const Options& options) {
       return std::make_unique<TeOffload>(count_of("te-offload", options, "layers", 1'000'000, 0),
                                          options.bytes("least"));
     }}};

}  // namespace
}  // namespace tidepool
