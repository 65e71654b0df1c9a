#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

enum class Offload : std::uint8_t { kConvolutions, kAll };

/// Virtualized DNN: copies inputs of layers to the host while the layers run forward, and back while later layers run
/// backward.
///   all    inputs of all layers that extract features: those up to the last convolution or pooling
///   conv   inputs of convolutions only, whose time hides copies best
///   dyn    no inputs if the step fits the memory without copies; else conv if it fits with that; else all
/// An input is copied while the last layer that reads it runs forward. The next layer waits until the input has left
/// ("end-of-layer synchronisation"): it loses max(0, s / B - t), with s the input's bytes, B the link's rate, and t the
/// layer's time. When a layer begins backward, the nearest earlier layer with an absent input that has not been
/// requested gets it back, unless a convolution lies between (findPrefetchLayer in the paper). The end of the layer
/// waits for that swap-in too. all and conv copy at any capacity. If that is not enough, the run is out of memory.
///
/// Paper: Rhu, Gimelshein, Clemons, Zulfiqar and Keckler, "vDNN: Virtualized Deep Neural Networks for Scalable,
/// Memory-Efficient Neural Network Design", MICRO 2016 (arXiv 1602.08124), sections III.B and III.C; details of
/// the search window and of dyn are from public notes and reimplementations.
///
/// Differences: a trace has one algorithm for each convolution, so dyn does not exchange algorithms. A swap-in that
/// finds no room is tried again later; it is not an error. Beyond the paper: in a network without convolutions,
/// products of matrices replace them, and all its layers extract features. Content from before the step (the first
/// layer's input) stays. Cost: at most two simulations for dyn.
class Vdnn final : public Policy {
 public:
  explicit Vdnn(const std::string& which) {
    if (which != "dyn") fixed_ = which == "all" ? Offload::kAll : Offload::kConvolutions;
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const Layers layers = find_layers(trace);
    if (fixed_) return draft(trace, layers, *fixed_);
    const auto fits = [&](const std::vector<Action>& actions) {
      ++judged_;
      return judge(trace, spec, follow_draft({actions, {}}, OnDemand::kNothing)).outcome == Outcome::kOk;
    };
    if (fits({})) return {};
    if (std::vector<Action> conv = draft(trace, layers, Offload::kConvolutions); fits(conv)) return conv;
    return draft(trace, layers, Offload::kAll);
  }

  std::int64_t cost_evaluations() const override { return judged_; }

 private:
  static std::vector<Action> draft(const Trace& trace, const Layers& layers, Offload offload) {
    const LayerKind heavy = layers.heavy();
    const std::uint32_t classifier = first_classifier(layers);
    std::vector<std::vector<VersionId>> leaving(layers.size()), due(layers.size());
    for (const Kept& kept : layers.kept) {
      if (kept.reader == kept.maker || kept.reader >= classifier) continue;
      if (offload == Offload::kConvolutions && !is_input_of(heavy, trace, layers, kept)) continue;
      leaving[kept.reader].push_back(kept.saved.version);
      due[kept.due].push_back(kept.saved.version);
    }
    CopyDraft copies{trace};
    for (std::size_t n = 0; n < layers.size(); ++n) {
      for (const VersionId v : leaving[n]) copies.copy_out(layers.layers[n].first, v);
      for (const VersionId v : leaving[n]) copies.await(layers.layers[n].behind, v);
      for (const VersionId v : leaving[n]) copies.release(layers.layers[n].behind, v);
    }
    for (std::size_t n = layers.size(); n-- > 0;) {
      const Layer& layer = layers.layers[n];
      if (layer.backward == layer.backward_behind) continue;
      for (std::size_t id = n; id-- > 0;) {
        if (!due[id].empty()) {
          for (const VersionId v : due[id]) copies.copy_back(layer.backward, v);
          for (const VersionId v : due[id]) copies.await(layer.backward_behind, v);
          due[id].clear();
          break;
        }
        if (layers.layers[id].kind == heavy) break;
      }
    }
    return copies.take();
  }

  /// The layer after the last one that extracts features.
  static std::uint32_t first_classifier(const Layers& layers) {
    auto first = static_cast<std::uint32_t>(layers.size());
    if (layers.heavy() != LayerKind::kConvolution) return first;
    while (layers.layers[first - 1].kind != LayerKind::kConvolution &&
           layers.layers[first - 1].kind != LayerKind::kPool)
      --first;
    return first;
  }

  static bool is_input_of(LayerKind kind, const Trace& trace, const Layers& layers, const Kept& kept) {
    const auto readers = trace.readers(kept.saved.version);
    return std::any_of(readers.begin(), readers.end(), [&](OpId op) {
      return op.value() < layers.backward && layers.layers[layers.layer_of(op.value())].kind == kind;
    });
  }

  std::optional<Offload> fixed_;
  std::int64_t judged_ = 0;
};

const RegisterPolicy kVdnn{
    {.name = "vdnn",
     .kind = PolicyKind::kSwap,
     .summary = "copies inputs of layers to the host as they run forward, and back one layer ahead",
     .paper = "vDNN: Rhu et al., MICRO 2016, sections III.B and III.C",
     .options = {{"which", "dyn", "all|conv|dyn",
                  "layers whose inputs are copied; dyn: the first of none, conv, all that fits"}},
     .make = [](const Options& options) { return std::make_unique<Vdnn>(options.word("which")); }}};

}  // namespace
}  // namespace tidepool
