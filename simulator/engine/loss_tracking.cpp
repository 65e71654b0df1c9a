#include "simulator/engine/loss_tracking.hpp"

#include <algorithm>

namespace tidepool {

std::vector<VersionId> LossTracking::before(VersionId v) {
  std::vector<VersionId> reached{v}, wanted;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const OpId reader : trace_.readers(reached[i])) {
      if (reader.value() > op_) break;
      if (outputs_[reader.index()] != Outputs::kOther || !tells(reader)) continue;
      bool all = reader.value() < op_;
      for (const VersionId made : trace_.made(reader)) {
        VersionState& s = states_[made.index()];
        all &= s.created;
        if (!s.created || !s.regenerable) continue;
        s.regenerable = false;
        policies_.changed(made);
        if (s.placed || s.on_host) continue;
        reached.push_back(made);
        if (s.wanted) wanted.push_back(made);
      }
      if (all) outputs_[reader.index()] = Outputs::kNotRegenerable;
    }
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

void LossTracking::after(VersionId v) {
  std::vector<VersionId> gone{v};
  while (!gone.empty()) {
    const VersionId lost = gone.back();
    gone.pop_back();
    if (lost_[lost.index()]) continue;
    lost_[lost.index()] = true;
    for (const OpId reader : trace_.readers(lost)) {
      if (reader.value() > op_) break;
      if (outputs_[reader.index()] == Outputs::kSettled || !tells(reader)) continue;
      bool all = reader.value() < op_;
      for (const VersionId made : trace_.made(reader)) {
        VersionState& s = states_[made.index()];
        all &= s.created;
        if (!s.created) continue;
        s.regenerable = false;
        policies_.changed(made);
        if (!s.filled && !s.placed && !s.on_host) gone.push_back(made);
      }
      if (all) outputs_[reader.index()] = Outputs::kSettled;
    }
  }
}

}  // namespace tidepool
