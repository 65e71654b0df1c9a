// Order between ops of different streams, from events and from waits of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "traces/ids.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Follows what the host issues, in its order, and notes which op of one stream must end before which of another
/// starts. What the host waited for is waited for by all that is issued later, on any stream.
class IssueOrder {
 public:
  /// What was issued to a stream up to some moment; the last op stands for all. None: nothing.
  using Point = OpId;

  /// The point that an event recorded on this stream now stands for.
  Point point(StreamId stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? Point{} : found->second.last;
  }

  /// What is issued to `stream` from now on waits for a point of another one.
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
    std::size_t host_seen = 0;         // of host_waits_, what this stream's ops wait for already
    std::map<StreamId, Point> joined;  // by other stream, what this stream's ops wait for already
  };

  std::map<StreamId, Stream> streams_;  // those that were used
  std::vector<Waited> host_waits_;
  std::map<StreamId, Point> host_joined_;
};

}  // namespace tidepool
