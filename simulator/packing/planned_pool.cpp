#include "simulator/packing/planned_pool.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

namespace tidepool {
namespace {

using Offsets = std::vector<Bytes>;

/// The offsets of all buffers of a trace, each device planned by itself.
Offsets plan_all(const Trace& trace, Bytes alignment, Planner& planner) {
  std::uint16_t last = 0;
  for (const Buffer& buffer : trace.buffers()) last = std::max(last, buffer.device);
  Offsets offsets(trace.buffers().size());
  for (std::uint32_t device = 0; device <= last; ++device) {
    const Instance instance = lifetimes_of(trace, static_cast<std::uint16_t>(device), alignment);
    const Layout layout = planner.plan(instance, {});
    for (std::size_t i = 0; i < instance.items.size(); ++i) offsets[instance.items[i].id] = layout.offsets[i];
  }
  return offsets;
}

/// The plans made last: the runs of a sweep differ in their capacities, not in their plans. Threads that need the same
/// plan wait for one of them to make it.
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
  for (std::size_t id = 0; id < planned_->size(); ++id)
    height_ = std::max(height_, (*planned_)[id] + round_up(trace.buffers()[id].size, alignment_));
  holes_.clear();
  sizes_.clear();
  if (capacity > Bytes{}) add_free({}, capacity);
}

std::optional<Block> PlannedPool::place(const Request& request) {
  if (request.size > capacity_) return {};
  const Bytes size = std::max(round_up(request.size, alignment_), alignment_);
  if (request.version.valid()) {
    const Bytes wanted = (*planned_)[trace_->version(request.version).buffer.index()];
    if (const auto above = holes_.upper_bound(wanted); above != holes_.begin())
      if (const auto hole = std::prev(above); hole->first + hole->second >= wanted + size)
        return take(hole, wanted, size);
  }
  if (const auto top = holes_.empty() ? holes_.end() : std::prev(holes_.end()); top != holes_.end()) {
    const Bytes address = std::max(top->first, round_up(height_, alignment_));
    if (top->first + top->second >= address + size) return take(top, address, size);
  }
  const auto found = sizes_.lower_bound({size, Bytes{}});
  if (found == sizes_.end()) return {};
  return take(holes_.find(found->second), found->second, size);
}

void PlannedPool::release(const Block& block) {
  Bytes address = block.offset, size = block.size;
  if (const auto above = holes_.lower_bound(address); above != holes_.end() && above->first == address + size) {
    size += above->second;
    erase_free(above);
  }
  if (const auto above = holes_.lower_bound(address); above != holes_.begin())
    if (const auto below = std::prev(above); below->first + below->second == address) {
      address = below->first;
      size += below->second;
      erase_free(below);
    }
  add_free(address, size);
}

Bytes PlannedPool::largest_hole() const { return sizes_.empty() ? Bytes{} : sizes_.rbegin()->first; }

void PlannedPool::add_free(Bytes address, Bytes size) {
  holes_.emplace(address, size);
  sizes_.emplace(size, address);
}

void PlannedPool::erase_free(std::map<Bytes, Bytes>::iterator hole) {
  sizes_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

Block PlannedPool::take(std::map<Bytes, Bytes>::iterator hole, Bytes address, Bytes size) {
  const auto [first, length] = *hole;
  erase_free(hole);
  if (address > first) add_free(first, address - first);
  if (first + length > address + size) add_free(address + size, first + length - address - size);
  return {address, size};
}

OptionInfo alignment_option() {
  return {"alignment", "0B", "bytes",
          "of offsets and sizes; 0B: 512B in a trace, as the file says in a list of lifetimes"};
}

Bytes trace_alignment(const Options& options) {
  const Bytes alignment = options.bytes("alignment");
  return alignment == Bytes{} ? 512_B : alignment;
}

}  // namespace tidepool
