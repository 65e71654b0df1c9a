// The part of the timeline that describes the state in which an iteration begins.
#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/engine/timeline.hpp"

namespace tidepool {
namespace {

/// A state as a list of numbers in which clocks count from an origin. No action begins before the origin, so a clock
/// before it counts as 0.
class Recorder {
 public:
  Recorder(Nanos origin, const Links& links, std::vector<std::int64_t>& out)
      : origin_{origin}, links_{links}, out_{out} {}

  void add(std::int64_t number) { out_.push_back(number); }
  void add(Bytes bytes) { add(bytes.count()); }
  void add(Nanos time) { add(std::max(time - origin_, Nanos{}).count()); }
  /// A copy under way is written as the number of copies under way up to and including it.
  void add(const Moment& moment) {
    const auto [time, open] = links_.simplified(moment);
    add(time);
    add(open.out == 0 ? 0 : open.out - links_.ended_number(Direction::kOut));
    add(open.in == 0 ? 0 : open.in - links_.ended_number(Direction::kIn));
  }

 private:
  Nanos origin_;
  const Links& links_;
  std::vector<std::int64_t>& out_;
};

}  // namespace

/// The earliest clock of all streams that have ops: nothing begins on the others.
Nanos Timeline::earliest_stream() const {
  std::vector<bool> has_ops(streams_.size());
  for (const Op& op : trace_.ops()) has_ops[op.stream.index()] = true;
  Nanos earliest = latest();
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (has_ops[i]) earliest = std::min(earliest, streams_[i]);
  return earliest;
}

Boundary Timeline::boundary() {
  const Nanos origin = earliest_stream();
  Boundary boundary;
  boundary.host_lead = origin - host_;
  boundary.host_delayed = host_delayed_before_;
  if (disturbed_) links_.advance(origin);
  Recorder record{origin, links_, boundary.state};
  for (const Nanos stream : streams_) record.add(stream);
  for (const Nanos clock : {h2d_, d2h_, storage_.written(), storage_.read()}) record.add(clock);
  if (disturbed_) links_.record(origin, boundary.state);
  for (std::size_t i = 0; i < trace_.buffers().size(); ++i) {
    if (!trace_.buffers()[i].born_before) continue;
    const VersionId v = trace_.first_version(BufferId{i});
    const VersionState& state = states_[v.index()];
    const UnderWay copies = disturbed_ ? under_way_[v.index()] : UnderWay{};
    record.add((state.placed ? 1 : 0) | (state.filled ? 2 : 0) | (state.on_host ? 4 : 0) | (state.from_host ? 8 : 0) |
               (state.in_host_pool ? 16 : 0) | (state.in_storage ? 32 : 0));
    if (state.placed) {
      boundary.places.insert(boundary.places.end(), {state.offset.count(), state.held.count()});
      record.add(Moment{state.ready, copies.ready});
      record.add(Moment{state.last_use, copies.last_use});
    }
    if (state.on_host) record.add(Moment{state.host_ready, {copies.to_host, 0}});
  }
  std::vector<std::pair<Bytes, Moment>> still_used;  // free places, by size
  free_from_.for_each([&](Bytes first, Bytes end, const Moment& time) {
    const Moment known = links_.simplified(time);
    if (known.time <= origin && known.after.none()) return;
    still_used.push_back({end - first, known});
    boundary.places.push_back(first.count());
  });
  const auto key = [](const auto& place) {
    return std::tuple{place.first, place.second.time, place.second.after.out, place.second.after.in};
  };
  std::sort(still_used.begin(), still_used.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  for (const auto& [size, free_from] : still_used) record.add(size), record.add(free_from);
  counted_.for_each([&](Bytes size, const Moment& free_from) {
    const Moment known = links_.simplified(free_from);
    if (size > Bytes{} && known.time <= origin && known.after.none()) return;
    record.add(size), record.add(known);
  });
  record.add(reserved_);
  host_pool_.record(boundary.state);
  return boundary;
}

}  // namespace tidepool
