#include "simulator/solvers/packing/follower.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {
namespace {

/// Adds one more size to the hash of a window.
std::uint64_t mix(std::uint64_t hash, Bytes size) {
  hash = (hash ^ static_cast<std::uint64_t>(size.count())) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

}  // namespace

Follower::Follower(const std::vector<PlannedRequest>& requests, std::size_t existing)
    : requests_{requests}, existing_{existing} {
  for (std::size_t last = kWindow - 1; last < requests.size(); ++last) windows_[hash_of(last)].push_back(last);
}

std::optional<std::size_t> Follower::next(Bytes size) {
  remember(size);
  if (requests_.empty()) return {};
  ++since_deviation_;
  if (is(cursor_, size)) return accept(cursor_);
  if (before_jump_ && is(*before_jump_, size)) {
    const std::size_t position = *before_jump_;
    before_jump_.reset();
    return accept(position);
  }
  const bool again = std::exchange(since_deviation_, 0) < kWindow;
  const std::optional<std::size_t> near = ahead(size), far = by_window();
  const std::optional<std::size_t> position = again && far ? far : near ? near : far;
  if (!position) return {};
  ++resynchronised_;
  before_jump_ = position == near ? std::optional{cursor_} : std::nullopt;
  return accept(*position);
}

std::size_t Follower::unused_for(Bytes address, Bytes size, std::size_t most) const {
  std::size_t position = cursor_;
  for (std::size_t steps = 0; steps < most; ++steps, position = after(position)) {
    const PlannedRequest& request = requests_[position];
    if (request.offset < address + size && address < request.offset + request.size) return steps;
  }
  return most;
}

std::size_t Follower::after(std::size_t position) const {
  if (position + 1 < requests_.size()) return position + 1;
  return existing_ < requests_.size() ? existing_ : 0;
}

std::size_t Follower::accept(std::size_t position) {
  cursor_ = after(position);
  return position;
}

/// Finds a window of the plan that equals the last requests: the next window that ends at or behind the cursor, or else
/// the first of all. @return  the window's last position
std::optional<std::size_t> Follower::by_window() const {
  if (recent_.size() < kWindow) return {};
  std::uint64_t hash = 0;
  for (const Bytes size : recent_) hash = mix(hash, size);
  const auto found = windows_.find(hash);
  if (found == windows_.end()) return {};
  const std::vector<std::size_t>& ends = found->second;
  const auto from = std::lower_bound(ends.begin(), ends.end(), cursor_);
  const std::size_t last = from != ends.end() ? *from : ends.front();
  for (std::size_t i = 0; i < kWindow; ++i)
    if (!is(last + 1 - kWindow + i, recent_[i])) return {};
  return last;
}

std::optional<std::size_t> Follower::ahead(Bytes size) const {
  std::size_t position = cursor_;
  for (std::size_t steps = 0; steps < std::min(kAhead, requests_.size()); ++steps) {
    position = after(position);
    if (is(position, size)) return position;
  }
  return {};
}

std::uint64_t Follower::hash_of(std::size_t end) const {
  std::uint64_t hash = 0;
  for (std::size_t i = end + 1 - kWindow; i <= end; ++i) hash = mix(hash, requests_[i].size);
  return hash;
}

void Follower::remember(Bytes size) {
  if (recent_.size() == kWindow) recent_.erase(recent_.begin());
  recent_.push_back(size);
}

}  // namespace tidepool
