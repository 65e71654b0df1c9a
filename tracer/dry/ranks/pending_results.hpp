// Results of messages, and of computations on sizes that read them, which have not been fetched yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace tidepool::dry {

/// Numbers of the results that a stream or an event depends on.
using ResultNumbers = std::vector<std::uint64_t>;

/// Bytes in memory.
struct ByteRange {
  std::uint64_t address = 0, bytes = 0;
  bool overlaps(const ByteRange& other) const {
    return address < other.address + other.bytes && other.address < address + bytes;
  }
};

/// On a device, streams wait for other ranks; the host waits only when it waits for a stream. So a result is fetched
/// when the host waits for it; when a copy, a fill or a computation on sizes overwrites its destination; when a copy
/// reads there, or a message is sent from there; when a computation on sizes reads numbers there and overwrites some of
/// them; or when numbers that it is computed from are about to be overwritten or freed. Thread safe; one thread at a
/// time fetches results.
class PendingResults {
 public:
  /// @param fetch  waits for the result and writes it to [address, address + bytes)
  /// @param reads  ranges that `fetch` reads
  /// @return the number of the result
  std::uint64_t add(std::uint64_t address, std::uint64_t bytes, std::function<void()> fetch,
                    std::vector<ByteRange> reads = {});

  /// Adds to `dependent` those of the results `on` that are pending, and removes those that are not any more. Changes
  /// nothing if no result is pending.
  void depend(ResultNumbers& dependent, const ResultNumbers& on);
  void depend(ResultNumbers& dependent, std::uint64_t on) { depend(dependent, ResultNumbers{on}); }

  /// Whether the destination of a pending result overlaps the range.
  bool belong(std::uint64_t address, std::uint64_t bytes);

  /// Fetches all results, or those with these numbers. Fetching one may fetch others.
  void fetch_all();
  void fetch(const ResultNumbers& numbers);
  /// Fetches the results whose destination overlaps the range.
  void fetch(std::uint64_t address, std::uint64_t bytes);
  /// Fetches the results that are computed from the range, which is about to be overwritten.
  void fetch_readers(std::uint64_t address, std::uint64_t bytes);
  /// As fetch_readers(); then forgets the results whose destination overlaps the range, because the program is about to
  /// free the range, or uses it for something else.
  void drop(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Result {
    ByteRange to;
    std::function<void()> fetch;
    std::vector<ByteRange> reads;
  };

  /// Fetches the results for which `wanted` is true, in the order of their requests.
  template <class Wanted>
  void fetch_if(const Wanted& wanted);

  std::mutex mutex_;               ///< guards the results
  std::recursive_mutex fetching_;  ///< held while results are fetched; locked before mutex_
  std::atomic<std::size_t> count_{0};
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Result> results_;
};

/// The results of this process; never destroyed.
PendingResults& pending_results();

}  // namespace tidepool::dry
