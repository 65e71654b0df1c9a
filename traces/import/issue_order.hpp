// Order between ops of different streams, from events and from waits of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "traces/ids.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Follows the ops and waits that the host issues, in order, and finds which op of one stream must end before which op
/// of another starts. After a wait of the host, later ops on all streams wait for the same point.
class IssueOrder {
 public:
  /// The ops that were issued to a stream up to some moment, named by the last of them. Not valid if there are none.
  using Point = OpId;

  /// The point of an event that is recorded on this stream now.
  Point point(StreamId stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? Point{} : found->second.last;
  }

  /// Ops issued to `stream` from now on wait for a point of another stream.
  void wait(StreamId stream, StreamId other, Point point);
  /// The host has waited for a point of a stream.
  void host_wait(StreamId other, Point point);

  /// An op is issued. Ids ascend.
  /// @return  the ops of other streams that it must wait for and that no op before it on its stream waited for already
  std::vector<OpId> run(StreamId stream, OpId op);

 private:
  struct Waited {
    StreamId stream;
    Point point;
  };
  struct Stream {
    Point last;
    std::vector<Waited> waits;         // for the next op
    std::size_t host_seen = 0;         // number of host_waits_ that this stream's ops wait for already
    std::map<StreamId, Point> joined;  // by other stream, the point that this stream's ops wait for already
  };

  std::map<StreamId, Stream> streams_;  // those that were used
  std::vector<Waited> host_waits_;
  std::map<StreamId, Point> host_joined_;
};

}  // namespace tidepool
