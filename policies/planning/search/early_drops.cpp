#include "policies/planning/search/early_drops.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {
namespace {

constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

/// The version in each place while a plan is followed.
class Owners {
 public:
  Owners(const Trace& trace, PlaceLog& log)
      : trace_{trace}, log_{log}, place_(trace.versions().size(), kNoPlace), used_(log.lives.size(), 0) {}

  void apply(const Action& action, std::vector<EarlyDrop>& drops) {
    const VersionId v{action.subject};
    switch (action.verb) {
      case Verb::kAlloc:
        place_[v.index()] = requests_;
        use(requests_++);
        break;
      case Verb::kScratch:
        ++requests_;
        break;
      case Verb::kCopy:
        use(place_[v.index()]);
        break;
      case Verb::kFree:
        place_[v.index()] = kNoPlace;
        break;
      case Verb::kDrop:
        drop(v, drops);
        break;
      case Verb::kRun:
        run(OpId{action.subject});
        break;
      case Verb::kNext:
        next_iteration();
        break;
      default:
        break;
    }
  }

 private:
  void use(std::uint32_t place) {
    if (place != kNoPlace) used_[place] = requests_;
  }

  void drop(VersionId v, std::vector<EarlyDrop>& drops) {
    const std::uint32_t place = std::exchange(place_[v.index()], kNoPlace);
    if (place == kNoPlace || place >= log_.lives.size()) return;
    const std::uint32_t due = std::max(used_[place], place + 1);
    drops.push_back({due, v});
    log_.lives[place].end = std::min(log_.lives[place].end, due);
  }

  void run(OpId op) {
    for (const Use& use_ : trace_.uses(op))
      if (use_.in.valid()) use(place_[trace_.root(use_.in).index()]);
    for (const VersionId made : trace_.made(op)) {
      const VersionId replaced = trace_.version(made).parent;
      if (place_[made.index()] == kNoPlace && replaced.valid())
        place_[made.index()] = std::exchange(place_[replaced.index()], kNoPlace);
      use(place_[made.index()]);
    }
  }

  /// Starts the next iteration: each buffer keeps its place, as its first version.
  void next_iteration() {
    for (std::size_t i = 0; i < place_.size(); ++i) {
      const VersionId v{i};
      const BufferId buffer = trace_.version(v).buffer;
      if (place_[i] == kNoPlace) continue;
      const std::uint32_t place = std::exchange(place_[i], kNoPlace);
      if (trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives)
        place_[trace_.first_version(buffer).index()] = place;
    }
  }

  const Trace& trace_;
  PlaceLog& log_;
  std::vector<std::uint32_t> place_;  // by version: the request for its place
  std::vector<std::uint32_t> used_;   // by request: the number of requests served before its last use
  std::uint32_t requests_ = 0;
};

}  // namespace

std::vector<EarlyDrop> drop_early(const Trace& trace, const Plan& plan, PlaceLog& log) {
  std::vector<EarlyDrop> drops;
  Owners owners{trace, log};
  for (const Action& action : plan.actions) owners.apply(action, drops);
  std::stable_sort(drops.begin(), drops.end(),
                   [](const EarlyDrop& a, const EarlyDrop& b) { return a.request < b.request; });
  return drops;
}

}  // namespace tidepool
