#include "traces/import/kineto_waits.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Times of the host and of the device are rounded to microseconds each.
constexpr Nanos kRounding{2'000};

}  // namespace

std::optional<KinetoWaits::Stream> KinetoWaits::waited_for(const KinetoWait& wait) const {
  const auto own = stream_of_.find(wait.thread);
  if (own != stream_of_.end() && last_end(own->second) <= wait.end + kRounding) return own->second;
  std::optional<Stream> best;
  for (const Stream& stream : ended_by(wait.end))
    if (!best || last_end(stream) > last_end(*best)) best = stream;
  return best;
}

std::vector<KinetoWaits::Stream> KinetoWaits::ended_by(Nanos time) const {
  std::vector<Stream> ended;
  for (const auto& [stream, ops] : ops_)
    if (ops.back().end <= time + kRounding) ended.push_back(stream);
  return ended;
}

std::vector<OpId> KinetoWaits::before(std::optional<std::int64_t> thread, Stream stream, Nanos start) {
  std::vector<OpId> found;
  if (!thread || waiting_.erase(*thread) == 0) return found;
  for (const auto& [other, ops] : ops_) {
    if (other == stream) continue;
    auto last =
        std::upper_bound(ops.begin(), ops.end(), start, [](Nanos time, const Issued& op) { return time < op.end; });
    if (last == ops.begin()) continue;
    const OpId op = (--last)->op;
    const auto [entry, added] = waited_.try_emplace({stream, other}, op);
    if (!added && entry->second >= op) continue;
    entry->second = op;
    found.push_back(op);
  }
  return found;
}

void KinetoWaits::issued(std::optional<std::int64_t> thread, Stream stream, OpId op, Nanos end) {
  std::vector<Issued>& ops = ops_[stream];
  ops.push_back({op, ops.empty() ? end : std::max(end, ops.back().end)});
  if (thread) stream_of_[*thread] = stream;
}

}  // namespace tidepool
