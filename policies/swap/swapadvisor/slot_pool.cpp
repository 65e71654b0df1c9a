#include "policies/swap/swapadvisor/slot_pool.hpp"

#include <algorithm>

#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {

SlotDemand::SlotDemand(const Trace& trace, const Assumptions& assume, Bytes granule) : trace_{trace} {
  const auto rounded = [&](const Buffer& buffer) { return std::max(round_up(buffer.size, granule), granule); };
  for (const Buffer& buffer : trace.buffers()) sizes_.push_back(rounded(buffer));
  std::sort(sizes_.begin(), sizes_.end());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  for (const Buffer& buffer : trace.buffers())
    size_of_.push_back(
        static_cast<std::uint32_t>(std::lower_bound(sizes_.begin(), sizes_.end(), rounded(buffer)) - sizes_.begin()));
  first_used_.assign(1, 0);
  for (std::size_t op = 0; op < trace.ops().size(); ++op) {
    for (const VersionId v : working_set(trace, assume, OpId{op}).held)
      used_.push_back(size_of_[trace.version(v).buffer.index()]);
    first_used_.push_back(used_.size());
  }
}

std::vector<std::size_t> SlotDemand::classes_of_sizes(const SlotClasses& classes) const {
  std::vector<std::size_t> found;
  for (const Bytes size : sizes_) found.push_back(class_of(classes, size));
  return found;
}

std::vector<std::uint32_t> SlotDemand::least(const SlotClasses& classes) const {
  const std::vector<std::size_t> of_size = classes_of_sizes(classes);
  std::vector<std::uint32_t> most(classes.size()), now(classes.size());
  for (std::size_t op = 0; op + 1 < first_used_.size(); ++op) {
    std::fill(now.begin(), now.end(), 0);
    for (std::size_t i = first_used_[op]; i < first_used_[op + 1]; ++i) ++now[of_size[used_[i]]];
    for (std::size_t c = 0; c < most.size(); ++c) most[c] = std::max(most[c], now[c]);
  }
  return most;
}

std::vector<std::vector<Bytes>> SlotDemand::live(const SlotClasses& classes) const {
  const std::vector<std::size_t> of_size = classes_of_sizes(classes);
  std::vector<std::vector<Bytes>> by_class(classes.size());
  std::vector<Bytes> now(classes.size());
  for (std::size_t b = 0; b < size_of_.size(); ++b)
    if (trace_.buffers()[b].born_before) now[of_size[size_of_[b]]] += Bytes{1};
  std::vector<Bytes> most = now;
  for (const Event& event : trace_.events()) {
    if (event.kind == EventKind::kRun) {
      for (std::size_t c = 0; c < now.size(); ++c) by_class[c].push_back(most[c]);
      most = now;
    }
    if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) continue;
    const std::size_t c = of_size[size_of_[event.id]];
    now[c] += event.kind == EventKind::kAlloc ? Bytes{1} : Bytes{-1};
    most[c] = std::max(most[c], now[c]);
  }
  return by_class;
}

}  // namespace tidepool
