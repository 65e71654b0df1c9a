#include <memory>
#include <random>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Drops a random buffer among those that can be recomputed, each equally likely. The same seed gives the same run.
/// O(1) per change of a buffer's state and per eviction.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1 (h_rand).
class RandomDrop final : public Policy, public Explainer {
 public:
  explicit RandomDrop(std::uint64_t seed) : generator_{seed} {}

  void start(const View& view) override {
    candidates_.clear();
    place_in_.assign(view.trace().versions().size(), kAbsent);
  }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    view.drain_changes([&](VersionId v) {
      std::size_t& slot = place_in_[v.index()];
      if (view.droppable(v) == (slot != kAbsent)) return;
      if (slot == kAbsent) {
        slot = candidates_.size();
        candidates_.push_back(v);
      } else {
        place_in_[candidates_.back().index()] = slot;
        candidates_[slot] = candidates_.back();
        candidates_.pop_back();
        slot = kAbsent;
      }
    });
    if (candidates_.empty()) return;
    drawn_ = candidates_[generator_() % candidates_.size()];  // the bias of % is below 2^-40 here
    out.push_back({.verb = Verb::kDrop, .subject = drawn_.value()});
  }

  Ranking ranking(const View&, const Request&) override {
    return {.score = "", .first = {{.versions = {drawn_}}}, .candidates = candidates_.size()};
  }

 private:
  static constexpr std::size_t kAbsent = ~std::size_t{0};
  std::mt19937_64 generator_;
  std::vector<VersionId> candidates_;
  VersionId drawn_;
  std::vector<std::size_t> place_in_;  // by version: its index in candidates_
};

const RegisterPolicy kRandom{{.name = "random",
                              .kind = PolicyKind::kRemat,
                              .summary = "drops a random buffer (seeded)",
                              .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1",
                              .options = {},
                              .make = [](const Options& o) { return std::make_unique<RandomDrop>(o.seed()); }}};

}  // namespace
}  // namespace tidepool
