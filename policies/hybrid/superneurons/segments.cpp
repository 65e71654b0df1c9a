#include "policies/hybrid/superneurons/segments.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace tidepool {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Calls visit(segment, version) for every version that segments drop.
template <class Visit>
void for_each_dropped(const Trace& trace, const Layers& layers, const std::vector<Segment>& segments, Visit visit) {
  Bytes total;
  for (const Kept& kept : layers.kept) total += trace.size(kept.saved.version);
  const auto joins_later = [&](const Kept& kept) {
    for (const OpId reader : trace.readers(kept.saved.version))
      if (reader.value() < layers.backward && layers.layer_of(reader.value()) != kept.reader &&
          layers.layer_of(reader.value()) != kept.maker)
        return true;
    return false;
  };
  for (const Kept& kept : layers.kept) {
    if (trace.size(kept.saved.version) * 1000 < total || joins_later(kept)) continue;
    const auto behind = std::upper_bound(segments.begin(), segments.end(), kept.origin,
                                         [](std::uint32_t layer, const Segment& each) { return layer < each.first; });
    if (behind != segments.begin() && kept.origin < std::prev(behind)->behind)
      visit(static_cast<std::size_t>(std::prev(behind) - segments.begin()), kept.saved.version);
  }
}

class Recomputation {
 public:
  Recomputation(const Trace& trace, const Layers& layers, const std::vector<Segment>& segments)
      : trace_{trace},
        layers_{layers},
        segments_{segments},
        segment_of_(trace.versions().size(), kNone),
        runs_at_(trace.ops().size()),
        last_use_(trace.versions().size()) {
    for_each_dropped(trace, layers, segments, [&](std::size_t segment, VersionId v) {
      segment_of_[v.index()] = static_cast<std::uint32_t>(segment);
    });
  }

  std::vector<Action> draft() {
    for (const Kept& kept : layers_.kept)
      if (dropped(kept.saved.version)) add(Verb::kDrop, kept.saved.last_forward + 1, kept.saved.version.value());
    for (std::size_t i = layers_.size(); i-- > 0;) regain(layers_.layers[i]);
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    return std::move(actions_);
  }

 private:
  bool dropped(VersionId v) const { return segment_of_[v.index()] != kNone; }
  bool for_every_layer(VersionId v) const {
    return dropped(v) && segments_[segment_of_[v.index()]].regain == Regain::kEvery;
  }

  void add(Verb verb, std::uint32_t before, std::uint32_t subject) {
    if (before < trace_.ops().size()) actions_.push_back({.verb = verb, .before = OpId{before}, .subject = subject});
  }

  /// Versions of kEvery segments that the backward ops of a layer read.
  std::vector<VersionId> read_by(const Layer& layer) const {
    std::vector<VersionId> read;
    for (std::uint32_t op = layer.backward; op < layer.backward_behind; ++op)
      for (const Use& use : trace_.uses(OpId{op}))
        if (use.in.valid() && for_every_layer(trace_.root(use.in))) read.push_back(trace_.root(use.in));
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    return read;
  }

  void regain(const Layer& layer) {
    const std::vector<VersionId> read = read_by(layer);
    std::set<OpId> runs;
    for (const VersionId v : read) find_runs(v, runs);
    run_again(layer.backward, runs, read);
    for (const VersionId v : read) add(Verb::kDrop, layer.backward_behind, v.value());
  }

  /// Finds the ops that must run to have `v`, and the ops in between that these need.
  void find_runs(VersionId v, std::set<OpId>& runs) {
    std::vector<VersionId> open{v};
    while (!open.empty()) {
      const VersionId next = open.back();
      open.pop_back();
      const OpId producer = trace_.version(next).producer;
      if (!producer.valid() || !runs.insert(producer).second) continue;
      for (const Use& use : trace_.uses(producer)) {
        if (!use.in.valid()) continue;
        const VersionId root = trace_.root(use.in);
        if (dropped(root) || gone(root)) open.push_back(root);
      }
    }
  }

  /// Whether a version counts as freed or replaced before the backward phase: an op makes it, and none reads it after
  /// the forward phase.
  bool gone(VersionId v) const {
    const auto readers = trace_.readers(v);
    return trace_.version(v).producer.valid() && (readers.empty() || readers.back().value() < layers_.backward);
  }

  void run_again(std::uint32_t before, const std::set<OpId>& runs, const std::vector<VersionId>& read) {
    for (auto op = runs.rbegin(); op != runs.rend(); ++op) {
      const auto made = trace_.made(*op);
      const bool named = std::any_of(made.begin(), made.end(), [&](VersionId v) { return dropped(v); });
      if (named) runs_at_[op->index()] = op->value();
      for (const Use& use : trace_.uses(*op)) {
        if (!use.in.valid()) continue;
        const VersionId root = trace_.root(use.in);
        if (const OpId producer = trace_.version(root).producer; producer.valid() && runs.contains(producer)) {
          last_use_[root.index()] = std::max(last_use_[root.index()], runs_at_[op->index()]);
          runs_at_[producer.index()] = std::max(runs_at_[producer.index()], runs_at_[op->index()]);
        }
      }
    }
    std::vector<VersionId> open;  // versions that were made and are dropped after their last use
    for (const OpId op : runs) {
      for (const VersionId made : trace_.made(op)) {
        if (!dropped(made)) continue;
        add(Verb::kRun, before, op.value());
        if (for_every_layer(made) && !std::binary_search(read.begin(), read.end(), made)) open.push_back(made);
      }
      std::erase_if(open, [&](VersionId v) {
        if (last_use_[v.index()] > op.value()) return false;
        add(Verb::kDrop, before, v.value());
        return true;
      });
    }
    for (const OpId op : runs) {
      runs_at_[op.index()] = 0;
      for (const VersionId made : trace_.made(op)) last_use_[made.index()] = 0;
    }
  }

  const Trace& trace_;
  const Layers& layers_;
  const std::vector<Segment>& segments_;
  std::vector<std::uint32_t> segment_of_;  // by version: the segment that drops it
  std::vector<std::uint32_t> runs_at_;     // by rerun op: the latest op that needs the rerun
  std::vector<std::uint32_t> last_use_;    // by version that a rerun op makes: the latest op that needs it
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Segment> find_segments(const Trace& trace, const Layers& layers, LayerKind checkpoint) {
  std::vector<Segment> segments;
  const auto count = static_cast<std::uint32_t>(layers.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (layers.layers[i].kind == checkpoint) continue;
    if (segments.empty() || segments.back().behind != i) segments.push_back({i, i, {}, Regain::kOnce});
    segments.back().behind = i + 1;
  }
  for_each_dropped(trace, layers, segments,
                   [&](std::size_t segment, VersionId v) { segments[segment].kept += trace.size(v); });
  return segments;
}

Bytes backward_bottleneck(const Trace& trace, const Layers& layers) {
  Bytes most;
  for (const Layer& layer : layers.layers) {
    std::set<BufferId> buffers;
    for (std::uint32_t op = layer.backward; op < layer.backward_behind; ++op)
      for (const Use& use : trace.uses(OpId{op}))
        buffers.insert(trace.version(use.in.valid() ? use.in : use.out).buffer);
    Bytes sum;
    for (const BufferId buffer : buffers)
      if (!trace.buffer(buffer).born_before) sum += trace.buffer(buffer).size;
    most = std::max(most, sum);
  }
  return most;
}

std::vector<Action> recompute_segments(const Trace& trace, const Layers& layers, const std::vector<Segment>& segments) {
  return Recomputation{trace, layers, segments}.draft();
}

}  // namespace tidepool
