#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// GeePS: a layer accesses buffers, and releases them when it has run. Pinned buffers stay on the device. Each of the
/// others is on the host between its accesses; it is swapped in during the access before the one that needs it.
///
/// A virtual iteration gives the order of accesses: every layer, forward and then backward, accesses the kept buffers
/// that it makes or reads. Let p(P) be the most bytes outside of the pinned set P that one access needs, and C the
/// memory that all other content leaves. A buffer b is pinned if |P| + |b| + 2 p <= C: p counts twice, since one access
/// computes while the next one is fetched. First come buffers of the access that needs most, with p as it is after
/// pinning b. If no such buffer fits, other buffers follow in the order of accesses, with p as it is before.
///
/// Paper: Cui, Zhang, Ganger, Gibbons and Xing, "GeePS: Scalable Deep Learning on Distributed GPUs with a
/// GPU-Specialized Parameter Server", EuroSys 2016; with the rule of the authors' program
/// (cuihenggang/geeps, clientlib-viter.cpp), which picks buffers in the order of a hash table; this policy picks them
/// in the order of accesses.
///
/// With one machine, parameters are not exchanged with others, and stay. So do gradients and buffers that live within a
/// phase; all of these make up the other content. A buffer also stays between two of its accesses if at most one other
/// access lies between them, since it would be fetched again during that one. O(kept buffers^2 * accesses) at worst.
class GeePs final : public Policy {
 public:
  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const Layers layers = find_layers(trace);
    const Accesses accesses = find_accesses(trace, layers);
    const std::vector<bool> pinned = pin(trace, layers, accesses, spec.capacity - most_besides(trace, layers));
    CopyDraft copies{trace};
    for (std::size_t i = 0; i < layers.kept.size(); ++i) {
      if (pinned[i]) continue;
      const VersionId v = layers.kept[i].saved.version;
      bool copied = false;
      for (std::size_t k = 0; k + 1 < accesses.of[i].size(); ++k) {
        const std::size_t last = accesses.of[i][k], next = accesses.of[i][k + 1];
        if (next <= last + 2) continue;
        if (!copied) copies.copy_out(accesses.behind[accesses.of[i].front()], v);
        copied = true;
        copies.release(accesses.behind[last], v);
        copies.copy_back(accesses.first[next - 1], v);
      }
    }
    return copies.take();
  }

 private:
  /// Accesses of layers: of all layers forward, then of the layers with backward ops backward.
  struct Accesses {
    std::vector<std::uint32_t> first, behind;  ///< ops, by access
    std::vector<std::vector<std::size_t>> of;  ///< by kept buffer: its accesses, ascending
  };

  static Accesses find_accesses(const Trace& trace, const Layers& layers) {
    Accesses accesses;
    for (const Layer& layer : layers.layers) {
      accesses.first.push_back(layer.first);
      accesses.behind.push_back(layer.behind);
    }
    for (auto layer = layers.layers.rbegin(); layer != layers.layers.rend(); ++layer) {
      if (layer->backward == layer->backward_behind) continue;
      accesses.first.push_back(layer->backward);
      accesses.behind.push_back(layer->backward_behind);
    }
    const auto access_of = [&](std::uint32_t op) {
      return static_cast<std::size_t>(std::upper_bound(accesses.first.begin(), accesses.first.end(), op) -
                                      accesses.first.begin()) -
             1;
    };
    for (const Kept& kept : layers.kept) {
      std::vector<std::size_t>& of = accesses.of.emplace_back(1, access_of(kept.saved.made));
      for (const OpId reader : trace.readers(kept.saved.version))
        if (const std::size_t access = access_of(reader.value()); access != of.back()) of.push_back(access);
    }
    return accesses;
  }

  /// The most bytes that are live at once besides the kept buffers.
  static Bytes most_besides(const Trace& trace, const Layers& layers) {
    std::vector<Bytes> besides = live_bytes(trace);
    const std::vector<std::uint32_t> ends = ends_of_versions(trace);
    std::vector<Bytes> change(besides.size() + 1);
    for (const Kept& kept : layers.kept) {
      change[kept.saved.made] -= trace.size(kept.saved.version);
      change[ends[kept.saved.version.index()]] += trace.size(kept.saved.version);
    }
    Bytes sum, most;
    for (std::size_t op = 0; op < besides.size(); ++op) most = std::max(most, besides[op] + (sum += change[op]));
    return most;
  }

  static std::vector<bool> pin(const Trace& trace, const Layers& layers, const Accesses& accesses, Bytes capacity) {
    const std::size_t count = layers.kept.size();
    std::vector<bool> pinned(count);
    std::vector<Bytes> needs(accesses.first.size());  // by access: bytes that are not pinned
    const auto size = [&](std::size_t i) { return trace.size(layers.kept[i].saved.version); };
    for (std::size_t i = 0; i < count; ++i)
      for (const std::size_t access : accesses.of[i]) needs[access] += size(i);
    Bytes used;
    const auto take = [&](std::size_t i) {
      pinned[i] = true;
      used += size(i);
      for (const std::size_t access : accesses.of[i]) needs[access] -= size(i);
    };
    const auto most = [&] { return needs.empty() ? Bytes{} : *std::max_element(needs.begin(), needs.end()); };
    for (bool more = true; more;) {
      more = false;
      const auto busiest = static_cast<std::size_t>(std::max_element(needs.begin(), needs.end()) - needs.begin());
      for (std::size_t i = 0; i < count && !more; ++i) {
        if (pinned[i] || !std::binary_search(accesses.of[i].begin(), accesses.of[i].end(), busiest)) continue;
        Bytes second;
        for (std::size_t access = 0; access < needs.size(); ++access)
          if (access != busiest) second = std::max(second, needs[access]);
        if (used + size(i) + std::max(needs[busiest] - size(i), second) * 2 > capacity) continue;
        take(i);
        more = true;
      }
      if (more) continue;
      const Bytes peak = most();
      for (std::size_t i = 0; i < count; ++i)
        if (!pinned[i] && used + size(i) + peak * 2 <= capacity) take(i), more = true;
    }
    return pinned;
  }
};

const RegisterPolicy kGeeps{{.name = "geeps",
                             .kind = PolicyKind::kSwap,
                             .summary = "pins what fits beside two accesses of layers, and stages the rest",
                             .paper = "GeePS: Cui et al., EuroSys 2016; its program's choice of what is pinned",
                             .options = {},
                             .make = [](const Options&) { return std::make_unique<GeePs>(); }}};

}  // namespace
}  // namespace tidepool
