#include "traces/import/issue_order.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Notes that `point` of `stream` is waited for. @return  false if the point is not valid, or if it or a later one
/// was noted before
bool join(std::map<StreamId, OpId>& joined, StreamId stream, OpId point) {
  if (!point.valid()) return false;
  const auto [entry, added] = joined.try_emplace(stream, point);
  if (!added && entry->second >= point) return false;
  entry->second = point;
  return true;
}

}  // namespace

void IssueOrder::wait(StreamId stream, StreamId other, Point point) {
  if (stream != other) streams_[stream].waits.push_back({other, point});
}

void IssueOrder::host_wait(StreamId other, Point point) {
  if (join(host_joined_, other, point)) host_waits_.push_back({other, point});
}

std::vector<OpId> IssueOrder::run(StreamId stream, OpId op) {
  Stream& self = streams_[stream];
  for (; self.host_seen < host_waits_.size(); ++self.host_seen)
    if (host_waits_[self.host_seen].stream != stream) self.waits.push_back(host_waits_[self.host_seen]);
  std::map<StreamId, Point> latest;
  for (const Waited& waited : self.waits)
    if (join(self.joined, waited.stream, waited.point)) latest[waited.stream] = waited.point;
  self.waits.clear();
  self.last = op;
  std::vector<OpId> before;
  for (const auto& [other, point] : latest) before.push_back(point);
  std::sort(before.begin(), before.end());
  return before;
}

}  // namespace tidepool
