// The stream and the event that a recorded wait was for, which a Kineto file does not name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "traces/import/kineto.hpp"

namespace tidepool {

/// The ops in the order in which the host issues them, and the targets of waits. No result contradicts recorded times.
class KinetoWaits {
 public:
  /// A stream of a device.
  using Stream = std::pair<std::int64_t, std::int64_t>;

  /// The stream that a call of the host waited for. It is the first of these whose last op had ended when the call
  /// returned: the stream of the thread's last launch, the stream whose work ended last. None: no stream is one.
  std::optional<Stream> waited_for(const KinetoWait& wait) const;
  /// Streams whose last op had ended when the call returned.
  std::vector<Stream> ended_by(Nanos time) const;

  /// A thread made a stream wait for an event: the stream of its next launch.
  void event_wait(std::int64_t thread) { waiting_.insert(thread); }
  /// The ops that an activity on `stream`, launched by `thread`, waits for: of every other stream the last one that had
  /// ended when the activity started, if a wait stands between the thread's launches and nothing on this stream waits
  /// for that op already.
  std::vector<OpId> before(std::int64_t thread, Stream stream, Nanos start);

  void issued(std::int64_t thread, Stream stream, OpId op, Nanos end);
  /// The last op on a stream that was issued.
  OpId last(Stream stream) const { return ops_.at(stream).back().op; }
  Nanos last_end(Stream stream) const { return ops_.at(stream).back().end; }

 private:
  struct Issued {
    OpId op;
    Nanos end;  ///< of all up to this one
  };
  std::map<Stream, std::vector<Issued>> ops_;
  std::map<std::int64_t, Stream> stream_of_;          // by thread
  std::set<std::int64_t> waiting_;                    // threads
  std::map<std::pair<Stream, Stream>, OpId> waited_;  // by waiting stream and the other
};

}  // namespace tidepool
