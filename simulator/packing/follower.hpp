// Position in a planned step, kept for a program that may deviate from it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simulator/packing/layout_file.hpp"

namespace tidepool {

/// Follows the requests of a running job through the planned ones by their sizes. Where they differ,
///  1. the job may have left requests out: if the size comes again within kAhead planned requests, it is taken for the
///     next such one; if the request after that fits where it was before better than there, it goes back;
///  2. the job is where its last kWindow requests are the planned ones (a rolling hash over all windows of the plan
///     finds the next such place, then they are compared): first if it has deviated within so many requests, else if
///     1 finds nothing;
///  3. else it asks for something extra, which is not in the plan.
/// Behind the last planned request stands the first that is not `existing`: the next step begins. O(1) per request,
/// O(kAhead) where the job deviates.
class Follower {
 public:
  static constexpr std::size_t kWindow = 6;
  static constexpr std::size_t kAhead = 64;

  /// @param requests  of one step, in order; must stay alive
  /// @param existing  how many of the first are asked for only once
  Follower(const std::vector<PlannedRequest>& requests, std::size_t existing);

  /// The planned request that the job's next one is taken for; none if it is extra.
  std::optional<std::size_t> next(Bytes size);

  /// How many requests from the next one on until one is planned to use some of [address, address + size); `most` if it
  /// is that many or more. O(most).
  std::size_t unused_for(Bytes address, Bytes size, std::size_t most) const;
  std::size_t length() const { return requests_.size(); }

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
  std::size_t since_deviation_ = kWindow;                                // requests
  std::int64_t resynchronised_ = 0;
};

}  // namespace tidepool
