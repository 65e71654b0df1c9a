#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/engine/pools/arena.hpp"
#include "simulator/engine/pools/free_index.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/minimise.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {
namespace {

constexpr const char* kName = "tide-pool";

/// With more items, one pass of the search takes minutes, so that a layout at most this share above the load is enough.
constexpr std::size_t kManyItems = 65'536;
constexpr std::int64_t kEnough = 1000;

/// The layout of an online best fit, which takes some microseconds an item; none if an item is fixed, lives several
/// times or is aligned otherwise than the first.
std::optional<Layout> online_layout(const Instance& instance, Bytes load) {
  const Bytes unit = instance.items.front().alignment;
  const auto plain = [&](const Item& item) {
    return !item.fixed && item.last - item.first == 1 && item.alignment == unit;
  };
  if (!std::all_of(instance.items.begin(), instance.items.end(), plain)) return {};
  Arena<FreeIndex> arena{kNoLimit};
  std::vector<std::uint32_t> nodes(instance.items.size());
  Layout layout{.outcome = Outcome::kOk, .offsets = {}, .height = {}, .lower_bound = load, .proof = "load"};
  layout.offsets.resize(instance.items.size());
  for (const PackingEvent& event : events_of(instance)) {
    const Item& item = instance.items[event.item];
    if (item.size == Bytes{}) continue;
    if (!event.begins) {
      arena.release(nodes[event.item]);
      continue;
    }
    const auto taken = arena.place(round_up(item.size, unit));
    if (!taken) return {};
    nodes[event.item] = taken->node;
    layout.offsets[event.item] = taken->address;
    layout.height = std::max(layout.height, taken->address + item.size);
  }
  return layout;
}

/// A layout of least height with a proof, or the best layout found with its gap to the best bound: see minimise(). Gaps
/// in lifetimes, fixed offsets and alignments are part of the problem.
class TidePool final : public Planner {
 public:
  explicit TidePool(const Options& options) : effort_{number_of(kName, options, "effort", 1e9)} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    if (instance.items.size() <= kManyItems || limits.time) return minimise(instance, limits, effort_);
    const Bytes load = load_of(instance);
    PackingLimits close = limits;
    close.enough = std::max(limits.enough, std::min(limits.capacity, load + load / kEnough));
    if (std::optional<Layout> online = online_layout(instance, load); online && online->height <= close.enough)
      return *std::move(online);
    return minimise(instance, close, effort_);
  }

 private:
  double effort_;
};

const RegisterPool kTidePool{
    {.name = kName,
     .summary = "searches for the least height and proves it, or says how far it may be away",
     .paper = "Tidepool: bottom-up complete search; compare Moffitt, MiniMalloc, ASPLOS 2023",
     .options = {{"effort", std::to_string(kDefaultEffort), "number",
                  "without a time limit: millions of sections after which the search ends; with more than 65,536 "
                  "buffers, also at 0.1 % above the load"},
                 alignment_option()},
     .make = {},
     .plan = [](const Options& options) { return std::make_unique<TidePool>(options); }}};

}  // namespace
}  // namespace tidepool
