#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "policies/hybrid/superneurons/segments.hpp"
#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {
namespace {

/// SuperNeurons: convolutions are checkpoints, whose outputs are kept or swapped. Outputs of other layers are cheap:
/// they are dropped after their last use in the forward phase, and recomputed from the checkpoint before them.
///   liveness       frees tensors that no later layer reads: the program of a trace does this itself
///   tensor cache   offload=cache: on a shortage, the tensor that was used longest ago is swapped out; inputs of
///                  running ops are locked. If everything fits, nothing is copied. offload=always: outputs of
///                  checkpoints are copied when they are made, and leave after their last use in the forward phase (the
///                  unified tensor pool)
///   prefetch       when a checkpoint layer begins backward, it requests the outputs of checkpoints that earlier layers
///                  read backward, down to and including the nearest checkpoint layer before it, if there is room
///   recomputation  recompute=cost-aware: let l_peak = max l_i be the most bytes that one layer's backward step uses. A
///                  segment between checkpoints that keeps more bytes is run again for every layer that needs it, any
///                  other segment once (see Regain). So memory stays within l_peak, with as few reruns as possible
/// With when=short, all of this is done only if the step does not fit without it; the authors' program decides at
/// compile time.
///
/// Paper: Wang, Ye, Zhao, Wu, Li, Song, Xu and Kraska, "SuperNeurons: Dynamic GPU Memory Management for Training Deep
/// Neural Networks", PPoPP 2018, sections 3.2 to 3.4. Checkpoints (convolutions only), segments, the bottleneck and the
/// comparison are those of the authors' program (linnanwang/superneurons-release, recompute.cpp).
///
/// Not done: the choice of convolution algorithms by free memory (section 3.5), since a trace has one algorithm for
/// each convolution. Beyond the paper: in a network without convolutions, products of matrices are the checkpoints;
/// without these either, only the cache is left. Parameters never leave. O(log n) per change of a version's state.
class SuperNeurons final : public SwapOutLeast<OldestFirst> {
 public:
  explicit SuperNeurons(const Options& options)
      : recompute_{options.word("recompute")},
        always_offload_{options.word("offload") == "always"},
        always_{options.word("when") == "always"} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    prefetch_.resize(trace.ops().size());
    if (!always_ && trace.ideal_peak() <= spec.capacity) return {};
    const Layers layers = find_layers(trace);
    const LayerKind checkpoint = layers.heavy();
    const auto is_checkpoint = [&](std::uint32_t layer) { return layers.layers[layer].kind == checkpoint; };
    std::vector<Segment> segments = find_segments(trace, layers, checkpoint);
    if (segments.size() == 1 && segments[0].behind - segments[0].first == layers.size()) return {};
    const Bytes bottleneck = backward_bottleneck(trace, layers);
    for (Segment& segment : segments)
      if (recompute_ == "memory" || (recompute_ == "cost-aware" && segment.kept > bottleneck))
        segment.regain = Regain::kEvery;
    if (recompute_ != "off") draft_ = Draft{recompute_segments(trace, layers, segments)};

    CopyDraft copies{trace};
    for (const Kept& kept : layers.kept) {
      if (!is_checkpoint(kept.origin)) continue;
      for (auto layer = kept.due + 1; layer < layers.size(); ++layer)
        if (is_checkpoint(layer) && layers.layers[layer].backward < layers.layers[layer].backward_behind) {
          prefetch_[layers.layers[layer].backward].push_back(kept.saved.version);
          break;
        }
      if (!always_offload_) continue;
      copies.copy_out(kept.saved.made + 1, kept.saved.version);
      copies.release(kept.saved.last_forward + 1, kept.saved.version);
    }
    return copies.take();
  }

  void start(const View& view) override {
    SwapOutLeast<OldestFirst>::start(view);
    draft_.start();
  }

  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    draft_.due(view, op, out);
    for (const VersionId v : prefetch_[op.index()])
      if (view.absent(v) && view.state(v).on_host) out.push_back({.verb = Verb::kSwapIn, .subject = v.value()});
  }
  bool follows_plan() const override { return true; }

 private:
  bool may_go(const View& view, VersionId v) const override {
    return !view.trace().buffer(view.trace().version(v).buffer).born_before;
  }

  std::string recompute_;
  bool always_offload_, always_;
  Draft draft_;
  std::vector<std::vector<VersionId>> prefetch_;  // by op
};

const RegisterPolicy kSuperneurons{
    {.name = "superneurons",
     .kind = PolicyKind::kHybrid,
     .summary = "swaps outputs of convolutions, and runs cheap layers between them again",
     .paper = "SuperNeurons: Wang et al., PPoPP 2018, sections 3.2 to 3.4",
     .options = {{"recompute", "cost-aware", "cost-aware|speed|memory|off",
                  "segments run again cost-aware, once (speed), for every layer (memory), or never (off)"},
                 {"offload", "cache", "cache|always",
                  "cache: swap out on a shortage; always: copy outputs of convolutions as soon as they are made"},
                 {"when", "short", "short|always", "short: do nothing if the step fits without this policy"}},
     .make = [](const Options& options) { return std::make_unique<SuperNeurons>(options); }}};

}  // namespace
}  // namespace tidepool
