#include "simulator/studies/sweep/remaining_time.hpp"

#include <algorithm>

namespace tidepool {

void RemainingTime::begin(const std::string& kind, std::size_t run, double now) {
  --kinds_[kind].waiting;
  running_[run] = {kind, now};
}

void RemainingTime::end(std::size_t run, double now) {
  const auto ended = running_.find(run);
  Kind& kind = kinds_[ended->second.kind];
  ++kind.ended;
  kind.took += now - ended->second.begun;
  running_.erase(ended);
}

double RemainingTime::expected(const std::string& name, double now) const {
  if (const Kind& own = kinds_.at(name); own.ended > 0) return mean(own);
  double sum = 0, longest = 0;
  std::size_t known = 0;
  for (const auto& [other, kind] : kinds_)
    if (kind.ended > 0) sum += mean(kind), ++known;
  for (const auto& [run, running] : running_)
    if (running.kind == name) longest = std::max(longest, now - running.begun);
  return std::max(sum / static_cast<double>(known), longest);
}

std::optional<double> RemainingTime::at(double now) const {
  if (std::none_of(kinds_.begin(), kinds_.end(), [](const auto& kind) { return kind.second.ended > 0; }))
    return std::nullopt;
  double work = 0, longest = 0;
  for (const auto& [name, kind] : kinds_)
    if (kind.waiting > 0) work += static_cast<double>(kind.waiting) * expected(name, now);
  for (const auto& [run, running] : running_) {
    const double lasted = now - running.begun, left = expected(running.kind, now) - lasted;
    const double still = left > 0 ? left : lasted;
    work += still;
    longest = std::max(longest, still);
  }
  return std::max(work / threads_, longest);
}

}  // namespace tidepool
