// Estimate of the time that a sweep still takes, from the times of earlier runs of each kind.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace tidepool {

/// Times are in seconds, on any clock that does not go back. Runs of one kind (a trace under one policy and pool) are
/// assumed to take equally long. If no run of a kind has ended, the mean of the other kinds is used, or the time so far
/// of its own run in progress if that is longer. If a run takes longer than expected, its rest is assumed to be as long
/// as its time so far.
class RemainingTime {
 public:
  explicit RemainingTime(int threads) : threads_{threads} {}

  /// One more run of this kind will begin.
  void expect(const std::string& kind) { ++kinds_[kind].waiting; }
  /// Undoes one expect().
  void forget(const std::string& kind) { --kinds_[kind].waiting; }
  void begin(const std::string& kind, std::size_t run, double now);
  void end(std::size_t run, double now);

  /// Seconds until all expected runs have ended; none until one run has ended.
  std::optional<double> at(double now) const;

 private:
  struct Kind {
    std::size_t waiting = 0, ended = 0;
    double took = 0;  // sum over the runs that ended
  };
  struct Running {
    std::string kind;
    double begun = 0;
  };
  static double mean(const Kind& kind) { return kind.took / static_cast<double>(kind.ended); }
  double expected(const std::string& name, double now) const;

  int threads_;
  std::map<std::string, Kind> kinds_;
  std::map<std::size_t, Running> running_;
};

}  // namespace tidepool
