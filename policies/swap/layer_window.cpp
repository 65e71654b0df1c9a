#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// A window of m consecutive layers has its tensors for the backward phase on the device; tensors of other layers are
/// on the host. In the forward phase, tensors whose last use was in layer i are swapped out at once and have left when
/// layer i + m + 1 begins; they stay if there is no such layer. In the backward phase, the inputs of layer i are
/// requested when layer i + m begins or, if there is no such layer, when the phase begins.
///
/// m is the smallest window in which copies are hidden: if each lane does one copy after the other and ops take their
/// time, every swap-out ends before layer i + m + 1 begins, and every swap-in before layer i begins backward. If that
/// window does not fit the memory, m is the largest window that does, found by bisection. If none does, the run is out
/// of memory with m = 1.
///
/// After the working window of Sun et al., "STRONGHOLD: Fast and Affordable Billion-Scale Deep Learning Model
/// Training", SC 2022. It is not called by that name because STRONGHOLD moves parameters and optimizer states of
/// transformer blocks through the window and updates them on the host. O(layers * m) and about log2(m) + 1 simulations.
class LayerWindow final : public Policy {
 public:
  explicit LayerWindow(std::uint32_t window) : window_{window} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const Layers layers = find_layers(trace);
    if (layers.kept.empty() || (window_ == 0 && trace.ideal_peak() <= spec.capacity)) return {};
    if (window_ != 0) return draft(trace, layers, window_);
    const auto fits = [&](std::uint32_t window) {
      ++judged_;
      return judge(trace, spec, follow_draft({draft(trace, layers, window), {}}, OnDemand::kNothing)).outcome ==
             Outcome::kOk;
    };
    std::uint32_t fitting = 1, window = hidden_window(trace, layers, spec.machine);
    if (fits(window)) return draft(trace, layers, window);
    while (fitting + 1 < window) {
      const std::uint32_t middle = fitting + (window - fitting) / 2;
      (fits(middle) ? fitting : window) = middle;
    }
    return draft(trace, layers, fitting);
  }

  std::int64_t cost_evaluations() const override { return judged_; }

 private:
  static std::vector<Action> draft(const Trace& trace, const Layers& layers, std::uint32_t window) {
    CopyDraft copies{trace};
    for (const Kept& kept : layers.kept) {
      const std::uint32_t leaves = kept.reader + window + 1, asked = kept.due + window;
      if (leaves >= layers.size()) continue;
      const std::uint32_t gone = layers.layers[leaves].first;
      copies.copy_out(kept.saved.last_forward + 1, kept.saved.version);
      copies.await(gone, kept.saved.version);
      copies.release(gone, kept.saved.version);
      copies.copy_back(asked < layers.size() ? layers.layers[asked].backward : layers.backward, kept.saved.version);
    }
    return copies.take();
  }

  static std::uint32_t hidden_window(const Trace& trace, const Layers& layers, const Machine& machine) {
    const std::size_t n = layers.size();
    std::vector<Nanos> begins(n + 1), backward(n + 1);  // starts by layer; backward[n]: start of the backward phase
    std::vector<Bytes> out(n);
    const auto time = [&](std::uint32_t first, std::uint32_t behind) {
      Nanos sum;
      for (std::uint32_t op = first; op < behind; ++op) sum += trace.op(OpId{op}).duration;
      return sum;
    };
    for (std::size_t i = 0; i < n; ++i)
      begins[i + 1] = begins[i] + time(layers.layers[i].first, layers.layers[i].behind);
    Nanos now;
    for (std::size_t i = n; i-- > 0;) {
      backward[i] = now;
      now += time(layers.layers[i].backward, layers.layers[i].backward_behind);
    }
    for (const Kept& kept : layers.kept) out[kept.reader] += trace.size(kept.saved.version);
    const auto hidden = [&](std::size_t window) {
      Nanos lane;
      for (std::size_t i = 0; i + window + 1 < n; ++i) {
        if (out[i] == Bytes{}) continue;
        lane = std::max(lane, begins[i + 1]) + machine.d2h.time(out[i]);
        if (lane > begins[i + window + 1]) return false;
      }
      std::vector<Bytes> in(n);
      for (const Kept& kept : layers.kept)
        if (kept.reader + window + 1 < n) in[kept.due] += trace.size(kept.saved.version);
      lane = Nanos{};
      for (std::size_t i = n; i-- > 0;) {
        if (in[i] == Bytes{}) continue;
        lane = std::max(lane, backward[std::min(i + window, n)]) + machine.h2d.time(in[i]);
        if (lane > backward[i]) return false;
      }
      return true;
    };
    std::size_t window = 1;
    while (window < n && !hidden(window)) ++window;
    return static_cast<std::uint32_t>(window);
  }

  std::uint32_t window_;
  std::int64_t judged_ = 0;
};

const RegisterPolicy kLayerWindow{
    {.name = "layer-window",
     .kind = PolicyKind::kSwap,
     .summary = "keeps on the device the tensors of a window of consecutive layers, and the rest on the host",
     .paper = "after the working window of STRONGHOLD (Sun et al., SC 2022)",
     .options = {{"window", "0", "number", "layers; 0: the smallest that hides copies, or what fits"}},
     .make = [](const Options& options) {
       return std::make_unique<LayerWindow>(count_of<std::uint32_t>("layer-window", options, "window", 1'000'000, 0));
     }}};

}  // namespace
}  // namespace tidepool
