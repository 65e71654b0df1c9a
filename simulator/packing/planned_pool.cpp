#include "simulator/packing/planned_pool.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

#include "simulator/packing/buffer_events.hpp"

namespace tidepool {
namespace {

using Offsets = std::vector<Bytes>;

/// The offsets of all buffers of a trace, each device planned by itself.
Offsets plan_all(const Trace& trace, Bytes alignment, Planner& planner) {
  Offsets offsets(trace.buffers().size());
  for (std::uint32_t device = 0, devices = device_count(trace); device < devices; ++device) {
    const Instance instance = lifetimes_of(trace, static_cast<std::uint16_t>(device), alignment);
    const Layout layout = planner.plan(instance, {});
    for (std::size_t i = 0; i < instance.items.size(); ++i) offsets[instance.items[i].id] = layout.offsets[i];
  }
  return offsets;
}

/// The most recent plans, shared by the runs of a sweep: those differ in capacity, and the plan is the same for each.
/// If several threads need a plan, one makes it and the others wait.
std::shared_ptr<const Offsets> remembered(const std::string& key, const Trace& trace, Bytes alignment,
                                          Planner& planner) {
  struct Plan {
    std::string key;
    std::once_flag made;
    std::shared_ptr<const Offsets> offsets;
  };
  static std::mutex guard;
  static std::deque<std::shared_ptr<Plan>> plans;
  constexpr std::size_t kMost = 64;
  std::shared_ptr<Plan> plan;
  {
    const std::lock_guard lock{guard};
    const auto found = std::find_if(plans.begin(), plans.end(), [&](const auto& one) { return one->key == key; });
    if (found != plans.end()) {
      plan = *found;
    } else {
      plan = std::make_shared<Plan>();
      plan->key = key;
      plans.push_back(plan);
      if (plans.size() > kMost) plans.pop_front();
    }
  }
  std::call_once(plan->made, [&] { plan->offsets = std::make_shared<Offsets>(plan_all(trace, alignment, planner)); });
  return plan->offsets;
}

}  // namespace

PlannedPool::PlannedPool(std::string owner, std::unique_ptr<Planner> planner, const Options& options)
    : owner_{std::move(owner)}, planner_{std::move(planner)}, alignment_{trace_alignment(options)} {
  owner_ += '(' + options.text() + ") seed " + std::to_string(options.seed());
}

void PlannedPool::start(const Trace& trace, Bytes capacity, Device&) {
  trace_ = &trace;
  capacity_ = capacity;
  planned_ = remembered(trace.hash() + ' ' + owner_, trace, alignment_, *planner_);
  height_ = {};
  for (std::size_t id = 0; id < planned_->size(); ++id) {
    const Bytes size = std::max(round_up(trace.buffers()[id].size, alignment_), alignment_);
    height_ = std::max(height_, (*planned_)[id] + size);
  }
  holes_.emplace(capacity);
}

std::optional<Block> PlannedPool::place(const Request& request) {
  if (request.size > capacity_) return {};
  const Bytes size = std::max(round_up(request.size, alignment_), alignment_);
  if (request.version.valid()) {
    const Bytes planned = (*planned_)[trace_->version(request.version).buffer.index()];
    if (holes_->place_at(planned, size)) return Block{planned, size};
  }
  std::optional<Bytes> address = holes_->place_above(height_, size);
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
