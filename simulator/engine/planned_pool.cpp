#include "simulator/engine/planned_pool.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

#include "traces/step/buffer_events.hpp"

namespace tidepool {
namespace {

PlannedPlaces plan_all(const Trace& trace, Bytes alignment, Planner& planner) {
  PlannedPlaces places{.offsets = std::vector<Bytes>(trace.buffers().size()), .height = {}};
  for (std::uint32_t device = 0, devices = device_count(trace); device < devices; ++device) {
    const Instance instance = lifetimes_of(trace, static_cast<std::uint16_t>(device), alignment);
    const Layout layout = planner.plan(instance, {});
    for (std::size_t i = 0; i < instance.items.size(); ++i) {
      places.offsets[instance.items[i].id] = layout.offsets[i];
      places.height = std::max(places.height, layout.offsets[i] + instance.items[i].size);
    }
  }
  return places;
}

}  // namespace

/// Threads that need the same plan wait for one of them to make it.
std::shared_ptr<const PlannedPlaces> planned_places(const std::string& owner, const Trace& trace, Bytes alignment,
                                                    Planner& planner) {
  struct Entry {
    std::string key;
    std::once_flag made;
    std::shared_ptr<const PlannedPlaces> places;
  };
  static std::mutex guard;
  static std::deque<std::shared_ptr<Entry>> plans;
  constexpr std::size_t kMost = 64;
  const std::string key = trace.hash() + ' ' + owner;
  std::shared_ptr<Entry> plan;
  {
    const std::lock_guard lock{guard};
    const auto found = std::find_if(plans.begin(), plans.end(), [&](const auto& one) { return one->key == key; });
    if (found != plans.end()) {
      plan = *found;
    } else {
      plan = std::make_shared<Entry>();
      plan->key = key;
      plans.push_back(plan);
      if (plans.size() > kMost) plans.pop_front();
    }
  }
  std::call_once(plan->made,
                 [&] { plan->places = std::make_shared<PlannedPlaces>(plan_all(trace, alignment, planner)); });
  return plan->places;
}

PlannedPool::PlannedPool(std::string owner, std::unique_ptr<Planner> planner, const Options& options)
    : owner_{std::move(owner)}, planner_{std::move(planner)}, alignment_{trace_alignment(options)} {
  owner_ += '(' + options.text() + ") seed " + std::to_string(options.seed());
}

void PlannedPool::start(const Trace& trace, Bytes capacity, Device&) {
  trace_ = &trace;
  capacity_ = capacity;
  planned_ = planned_places(owner_, trace, alignment_, *planner_);
  holes_.emplace(capacity);
}

std::optional<Block> PlannedPool::place(const Request& request) {
  if (request.size > capacity_) return {};
  const Bytes size = std::max(round_up(request.size, alignment_), alignment_);
  if (request.version.valid()) {
    const Bytes planned = planned_->offsets[trace_->version(request.version).buffer.index()];
    if (holes_->place_at(planned, size)) return Block{planned, size};
  }
  std::optional<Bytes> address = holes_->place_above(planned_->height, size);
  if (!address) address = holes_->place_best(size);
  if (!address) return {};
  return Block{*address, size};
}

void PlannedPool::release(const Block& block) { holes_->release(block); }

Bytes PlannedPool::largest_hole() const { return holes_->largest(); }

OptionInfo alignment_option() {
  return {"alignment", "0B", "bytes",
          "of offsets and sizes; 0B: 512B in a trace, as the file says in a list of lifetimes"};
}

Bytes trace_alignment(const Options& options) {
  const Bytes alignment = options.bytes("alignment");
  return alignment == Bytes{} ? 512_B : alignment;
}

}  // namespace tidepool
