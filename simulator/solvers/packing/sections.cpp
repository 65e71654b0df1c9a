#include "simulator/solvers/packing/sections.hpp"

#include "simulator/instance.hpp"

namespace tidepool {

Sections::Sections(const Instance& instance) {
  std::vector<std::uint32_t> begun(instance.items.size());
  std::vector<SectionRange> ended;  // in the order of their ends
  std::vector<std::uint32_t> owner;
  ended.reserve(instance.intervals.size());
  owner.reserve(instance.intervals.size());
  bool open = false;
  for (const PackingEvent& event : events_of(instance)) {
    if (instance.items[event.item].size == Bytes{}) continue;
    if (event.begins) {
      begun[event.item] = count_;
      open = true;
      continue;
    }
    if (open) ++count_;
    open = false;
    ended.push_back({begun[event.item], count_});
    owner.push_back(event.item);
  }

  // Gather by item. An item's intervals end in ascending order.
  first_.assign(instance.items.size() + 1, 0);
  for (const std::uint32_t item : owner) ++first_[item + 1];
  for (std::size_t i = 0; i < instance.items.size(); ++i) first_[i + 1] += first_[i];
  std::vector<SectionRange> gathered(ended.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t k = 0; k < ended.size(); ++k) gathered[next[owner[k]]++] = ended[k];

  ranges_.reserve(gathered.size());
  std::uint32_t from = 0;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const std::uint32_t to = first_[i + 1];
    first_[i] = static_cast<std::uint32_t>(ranges_.size());
    for (std::uint32_t k = from; k < to; ++k)
      if (k > from && ranges_.back().last >= gathered[k].first)
        ranges_.back().last = gathered[k].last;
      else
        ranges_.push_back(gathered[k]);
    from = to;
  }
  first_.back() = static_cast<std::uint32_t>(ranges_.size());
}

}  // namespace tidepool
