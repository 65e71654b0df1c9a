#include "policies/planning/search/gap_changes.hpp"

namespace tidepool {
namespace {

bool lasts(const Gap& gap, std::size_t slot, std::size_t ops) {
  return (gap.release < slot && slot < gap.due) || slot + ops < gap.due;
}

}  // namespace

std::vector<How> how_of(const MixedSelection& selection, std::size_t gaps) {
  std::vector<How> how(gaps);
  for (const std::uint32_t i : selection.copied) how[i] = How::kCopied;
  for (const std::uint32_t i : selection.dropped) how[i] = How::kDropped;
  return how;
}

MixedSelection selection_of(const std::vector<How>& how) {
  MixedSelection selection;
  for (std::uint32_t i = 0; i < how.size(); ++i)
    if (how[i] != How::kKept) (how[i] == How::kCopied ? selection.copied : selection.dropped).push_back(i);
  return selection;
}

void GapChanges::look_at(const MixedPlan& mixed) {
  crowded_.clear();
  for (std::size_t k = 0; k < mixed.load.size(); ++k)
    if (mixed.load[k] + mixed.beyond[k] > planning_.capacity) crowded_.push_back(k);
}

std::vector<How> GapChanges::changed(const std::vector<How>& current) {
  std::vector<How> changed = current;
  const std::size_t move = draw(5);
  if (move != 0) use_another(current, changed);
  if (move == 0 || move >= 3) treat_otherwise(current, changed);
  return changed;
}

How GapChanges::otherwise(How how, std::uint32_t gap) {
  const bool may_drop = costs_[gap] != Reruns::kImpossible;
  if (how == How::kKept) return may_drop && draw(2) == 0 ? How::kDropped : How::kCopied;
  if (!may_drop || draw(2) == 0) return How::kKept;
  return how == How::kCopied ? How::kDropped : How::kCopied;
}

void GapChanges::treat_otherwise(const std::vector<How>& current, std::vector<How>& changed) {
  candidates_.clear();
  for (std::uint32_t i = 0; i < current.size(); ++i)
    if (current[i] != How::kKept) candidates_.push_back(i);
  if (candidates_.empty()) return;
  const std::uint32_t i = candidates_[draw(candidates_.size())];
  changed[i] = otherwise(current[i], i);
}

/// Uses a gap that is not used yet: mostly one that contains a crowded slot, if there is a crowded slot.
void GapChanges::use_another(const std::vector<How>& current, std::vector<How>& changed) {
  const bool anywhere = crowded_.empty() || draw(4) == 0;
  const std::size_t slot = anywhere ? draw(planning_.circle.size()) : crowded_[draw(crowded_.size())];
  candidates_.clear();
  for (std::uint32_t i = 0; i < current.size(); ++i)
    if (current[i] == How::kKept && lasts(planning_.gaps[i], slot, planning_.circle.size())) candidates_.push_back(i);
  if (candidates_.empty()) return;
  const std::uint32_t i = candidates_[draw(candidates_.size())];
  changed[i] = otherwise(How::kKept, i);
}

}  // namespace tidepool
