// Inference of the stream or event that a recorded wait was for. A Kineto file does not name them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "traces/import/kineto.hpp"

namespace tidepool {

/// Follows the ops in the order in which the host issues them, and infers which ops a wait was for. All results agree
/// with the recorded times. For waits of the host, an op that ended up to 2 us later counts as ended, since times are
/// rounded.
class KinetoWaits {
 public:
  /// A stream of a device.
  using Stream = std::pair<std::int64_t, std::int64_t>;

  /// The stream that a call of the host waited for: the stream of the thread's last launch, if all its ops had ended
  /// when the call returned. Otherwise, of all streams whose ops had ended then, the one that ended last; none if there
  /// is no such stream.
  std::optional<Stream> waited_for(const KinetoWait& wait) const;
  /// Streams whose ops had all ended at a time.
  std::vector<Stream> ended_by(Nanos time) const;

  /// A thread made a stream wait for an event. The stream is assumed to be that of the thread's next launch.
  void event_wait(std::int64_t thread) { waiting_.insert(thread); }
  /// `thread` launches an activity on `stream`. Returns the ops that the activity waits for. There are none unless
  /// event_wait() was called for the thread since its last launch. Otherwise they are, for every other stream, the last
  /// op that had ended when the activity started, unless `stream` waits for that op already.
  /// @param thread  none = not known
  std::vector<OpId> before(std::optional<std::int64_t> thread, Stream stream, Nanos start);

  /// A thread launched an op on a stream; the op ended at `end`.
  /// @param thread  none = not known
  void issued(std::optional<std::int64_t> thread, Stream stream, OpId op, Nanos end);
  /// The op that was issued last to a stream, and the latest end of the stream's ops. There must be one.
  OpId last(Stream stream) const { return ops_.at(stream).back().op; }
  Nanos last_end(Stream stream) const { return ops_.at(stream).back().end; }

 private:
  struct Issued {
    OpId op;
    Nanos end;  ///< latest end of this op and all before it on the stream
  };
  std::map<Stream, std::vector<Issued>> ops_;
  std::map<std::int64_t, Stream> stream_of_;          // by thread
  std::set<std::int64_t> waiting_;                    // threads that made a stream wait since their last launch
  std::map<std::pair<Stream, Stream>, OpId> waited_;  // by waiting stream and awaited stream
};

}  // namespace tidepool
