// Position in a planned step, kept for a program that may deviate from it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simulator/solvers/packing/layout_file.hpp"

namespace tidepool {

/// Matches the requests of a running job with the planned ones by their sizes. If a request has another size than the
/// next planned one, there are three rules:
///  1. Requests were left out: if one of the next kAhead planned requests has this size, the first of them matches. If
///     a later request deviates again and has the size of the first request that was left out, the jump is undone.
///  2. The job jumped to another place in the plan: if its last kWindow requests are a window of the plan, its position
///     is the end of that window. (A table of the hashes of all windows of the plan gives the next candidate; then the
///     sizes are compared.) This rule comes before rule 1 if the job has deviated within the last kWindow requests.
///  3. The request is extra: it is not in the plan.
/// After the last planned request the next step begins, with the first request that is not `existing`. O(1) per
/// request, O(kAhead) where the job deviates.
class Follower {
 public:
  static constexpr std::size_t kWindow = 6;
  static constexpr std::size_t kAhead = 64;

  /// @param requests  of one step, in order; must stay alive
  /// @param existing  number of requests at the beginning that are made only once
  Follower(const std::vector<PlannedRequest>& requests, std::size_t existing);

  /// The planned request that matches the job's next request; none if that request is extra.
  std::optional<std::size_t> next(Bytes size);

  /// The number of planned requests before the next one whose place overlaps [address, address + size); at most `most`.
  /// O(most).
  std::size_t unused_for(Bytes address, Bytes size, std::size_t most) const;
  std::size_t length() const { return requests_.size(); }

  /// Number of jumps by rules 1 and 2 so far, undone ones included.
  std::int64_t resynchronised() const { return resynchronised_; }

 private:
  bool is(std::size_t position, Bytes size) const { return requests_[position].size == size; }
  std::size_t after(std::size_t position) const;
  std::optional<std::size_t> by_window() const;
  std::optional<std::size_t> ahead(Bytes size) const;
  std::size_t accept(std::size_t position);
  std::uint64_t hash_of(std::size_t end) const;
  void remember(Bytes size);

  const std::vector<PlannedRequest>& requests_;
  std::size_t existing_;
  std::size_t cursor_ = 0;
  std::optional<std::size_t> before_jump_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> windows_;  // last positions of windows by hash, ascending
  std::vector<Bytes> recent_;                                            // the last kWindow requests, oldest first
  std::size_t since_deviation_ = kWindow;                                // number of requests since the last deviation
  std::int64_t resynchronised_ = 0;
};

}  // namespace tidepool
