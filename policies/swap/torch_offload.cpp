#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// torchtune's activation offloading (OffloadActivations with use_streams, in
/// torchtune/training/_activation_offloading.py). Every tensor that autograd saves is copied to the host on a stream of
/// its own as soon as it is saved, whatever the capacity. Parameters, buffers of modules and small tensors stay.
///
/// Saved tensors are counted, including those that stay. When the n-th tensor is copied, the compute stream waits until
/// the (n - stash)-th and all earlier ones have been copied, and releases them. The others are still alive when the
/// backward phase begins. The first node that reads an offloaded tensor reads its tensors in place if they are alive;
/// after that node, the rest leaves too. A node's tensors are swapped in when the host reaches the node. The host runs
/// ahead of the device, but the copying stream waits for the node before the previous one, so a swap-in starts one node
/// ahead. With head=keep, tensors stay that are saved by the last product or convolution (the output projection) or by
/// the loss after it.
///
/// A trace does not say which op saves a tensor. A tensor that the backward phase reads again counts as saved once:
/// when its first forward reader runs or, if no forward op reads it, when it has been made. In torchtune a tensor that
/// two ops save is copied twice, and copies in both directions share one stream; here each direction has its own lane.
/// O(uses) to plan.
class TorchOffload final : public Policy {
 public:
  TorchOffload(Bytes least, std::size_t stash, bool keep_head) : least_{least}, stash_{stash}, keep_head_{keep_head} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec&) override {
    const Layers layers = find_layers(trace);
    const std::vector<Pack> packs = find_packs(trace, layers);
    CopyDraft copies{trace};
    std::vector<std::uint32_t> released(trace.versions().size(), kNever);  // by version: the op that releases it
    const auto let_go = [&](const Pack& pack, std::uint32_t op) {
      copies.await(op, pack.kept->saved.version);
      const std::uint32_t gone = std::max(op, pack.kept->saved.last_forward + 1);
      copies.release(gone, pack.kept->saved.version);
      released[pack.kept->saved.version.index()] = gone;
    };
    std::size_t oldest = 0;  // the oldest saved tensor that is alive
    for (std::size_t id = 0; id < packs.size(); ++id) {
      if (packs[id].kept == nullptr) continue;
      for (; oldest + stash_ <= id; ++oldest)
        if (packs[oldest].kept != nullptr) let_go(packs[oldest], packs[id].op);
      copies.copy_out(packs[id].op, packs[id].kept->saved.version);
    }
    const std::vector<std::uint32_t> nodes = nodes_of(packs);
    if (nodes.empty()) return {};
    for (; oldest < packs.size(); ++oldest)
      if (packs[oldest].kept != nullptr && packs[oldest].kept->saved.first_again > nodes.front())
        let_go(packs[oldest], nodes.front() + 1);
    std::vector<Saved> back;
    for (const Pack& pack : packs)
      if (pack.kept != nullptr && released[pack.kept->saved.version.index()] != kNever)
        back.push_back(pack.kept->saved);
    std::stable_sort(back.begin(), back.end(),
                     [](const Saved& a, const Saved& b) { return a.first_again < b.first_again; });
    std::size_t node = 0;
    for (const Saved& saved : back) {
      while (nodes[node] < saved.first_again) ++node;
      const std::uint32_t from = node < 2 ? layers.backward : nodes[node - 2] + 1;
      copies.copy_back(std::max(from, released[saved.version.index()]), saved.version);
    }
    return copies.take();
  }

 private:
  /// A tensor that is saved before `op`.
  struct Pack {
    std::uint32_t op = 0;
    const Kept* kept = nullptr;  ///< none: the tensor is counted, but stays
  };

  std::vector<Pack> find_packs(const Trace& trace, const Layers& layers) const {
    std::uint32_t head = layers.backward;  // the first op whose saved tensors stay
    if (keep_head_)
      for (const Layer& layer : layers.layers)
        if (layer.kind == LayerKind::kConvolution || layer.kind == LayerKind::kProduct) head = layer.first;
    std::vector<const Kept*> kept(trace.versions().size());
    for (const Kept& each : layers.kept) kept[each.saved.version.index()] = &each;
    std::vector<bool> packed(trace.versions().size());
    std::vector<Pack> packs;
    const auto pack = [&](VersionId v, std::uint32_t op) {
      if (packed[v.index()]) return;
      packed[v.index()] = true;
      const bool leaves = kept[v.index()] != nullptr && trace.size(v) >= least_ && op < head;
      packs.push_back({op, leaves ? kept[v.index()] : nullptr});
    };
    const auto read_again = [&](VersionId v) {
      if (kept[v.index()] != nullptr) return true;
      const auto readers = trace.readers(v);
      const auto again = std::lower_bound(readers.begin(), readers.end(), OpId{layers.backward});
      return !trace.version(v).producer.valid() && again != readers.end() && again->value() < layers.backward_behind;
    };
    for (std::uint32_t op = 0; op < layers.backward; ++op) {
      for (const Use& use : trace.uses(OpId{op}))
        if (use.in.valid() && read_again(trace.root(use.in))) pack(trace.root(use.in), op);
      for (const VersionId made : trace.made(OpId{op}))
        if (kept[made.index()] != nullptr && kept[made.index()]->saved.last_forward == op) pack(made, op + 1);
    }
    return packs;
  }

  /// Backward ops that are the first readers of offloaded tensors, ascending.
  static std::vector<std::uint32_t> nodes_of(const std::vector<Pack>& packs) {
    std::vector<std::uint32_t> nodes;
    for (const Pack& pack : packs)
      if (pack.kept != nullptr) nodes.push_back(pack.kept->saved.first_again);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  Bytes least_;
  std::size_t stash_;
  bool keep_head_;
};

const RegisterPolicy kTorchOffload{
    {.name = "torch-offload",
     .kind = PolicyKind::kSwap,
     .summary = "copies every saved activation to the host as soon as it is saved, and back one node ahead",
     .paper = "torchtune, OffloadActivations with use_streams (training/_activation_offloading.py)",
     .options = {{"least", "1024B", "bytes", "smaller tensors stay (min_offload_size)"},
                 {"stash", "5", "number", "saved tensors that stay alive while the oldest leaves (max_fwd_stash_size)"},
                 {"head", "keep", "keep|offload", "whether tensors that the output projection and the loss save stay"}},
     .make = [](const Options& options) {
       return std::make_unique<TorchOffload>(options.bytes("least"),
                                             count_of("torch-offload", options, "stash", 1'000'000),
                                             options.word("head") == "keep");
     }}};

}  // namespace
}  // namespace tidepool
