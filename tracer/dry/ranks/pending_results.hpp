// Results of messages that have been asked for and are not there yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace tidepool::dry {

/// Numbers of results, as a stream or an event depends on them.
using ResultNumbers = std::vector<std::uint64_t>;

/// On a device a stream waits for other ranks, and the host only where it waits for the stream. So a result is fetched
/// when the host waits for it, or when a copy reads or overwrites the bytes where it belongs. Thread safe; fetching
/// results is done by one thread at a time.
class PendingResults {
 public:
  /// @param fetch  waits for the result and writes it to [address, address + bytes)
  std::uint64_t add(std::uint64_t address, std::uint64_t bytes, std::function<void()> fetch);

  /// `dependent` depends on what `on` depends on, too.
  void depend(ResultNumbers& dependent, const ResultNumbers& on);
  void depend(ResultNumbers& dependent, std::uint64_t on) { depend(dependent, ResultNumbers{on}); }

  /// Whether a result belongs to a byte of the range.
  bool belong(std::uint64_t address, std::uint64_t bytes);

  /// A result may fetch others while it is fetched.
  void fetch_all();
  void fetch(const ResultNumbers& numbers);
  /// Fetches what belongs to a byte of the range.
  void fetch(std::uint64_t address, std::uint64_t bytes);
  /// Forgets what belongs to a byte of the range: there is something else now.
  void drop(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Result {
    std::uint64_t address = 0, bytes = 0;
    std::function<void()> fetch;
    bool overlaps(std::uint64_t other, std::uint64_t size) const {
      return address < other + size && other < address + bytes;
    }
  };

  /// Fetches the results of which `wanted` is true, in the order in which they were asked for.
  template <class Wanted>
  void fetch_if(const Wanted& wanted);

  std::mutex mutex_;               ///< of the list
  std::recursive_mutex fetching_;  ///< held while results are fetched; taken before the other one
  std::atomic<std::size_t> count_{0};
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Result> results_;
};

PendingResults& pending_results();

}  // namespace tidepool::dry
