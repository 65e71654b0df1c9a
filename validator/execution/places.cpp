#include "validator/execution/places.hpp"

#include <algorithm>
#include <iterator>

namespace tidepool {

std::uint32_t Places::open(Bytes offset, Bytes size) {
  const std::uint32_t place = fresh(offset, size);
  if (offset != kNoAddress && size > Bytes{}) claim(place, offset, offset + size);
  return place;
}

std::uint32_t Places::open(Bytes offset, Bytes size, std::span<const std::pair<Bytes, Bytes>> memory) {
  const std::uint32_t place = fresh(offset, size);
  for (const auto& [first, length] : memory) claim(place, first, first + length);
  return place;
}

/// Makes a place that has no memory yet.
std::uint32_t Places::fresh(Bytes offset, Bytes size) {
  std::uint32_t place = 0;
  if (unused_.empty()) {
    place = static_cast<std::uint32_t>(states_.size());
    states_.emplace_back();
    touches_.resize(touches_.size() + 2 * lanes_);
  } else {
    place = unused_.back();
    unused_.pop_back();
  }
  states_[place] = {offset, size, 0, true};
  std::fill_n(writes(place), 2 * lanes_, 0U);
  return place;
}

void Places::close(std::uint32_t place) {
  states_[place].open = false;
  if (states_[place].pieces == 0) unused_.push_back(place);
}

void Places::claim(std::uint32_t place, Bytes first, Bytes end) {
  auto at = pieces_.upper_bound(first);
  if (at != pieces_.begin() && std::prev(at)->second.end > first) --at;
  while (at != pieces_.end() && at->first < end) {
    const auto [piece_first, piece] = *at;
    for (std::size_t lane = 0; lane < lanes_; ++lane)
      writes(place)[lane] = std::max({writes(place)[lane], writes(piece.place)[lane], reads(piece.place)[lane]});
    at = pieces_.erase(at);
    if (piece_first < first) {
      pieces_.emplace(piece_first, Piece{first, piece.place});
      ++states_[piece.place].pieces;
    }
    if (piece.end > end) {
      at = pieces_.emplace(end, Piece{piece.end, piece.place}).first;
      ++states_[piece.place].pieces;
    }
    lose_piece(piece.place);
  }
  pieces_.emplace(first, Piece{end, place});
  ++states_[place].pieces;
}

void Places::lose_piece(std::uint32_t place) {
  if (--states_[place].pieces == 0 && !states_[place].open) unused_.push_back(place);
}

void Places::before_reading(std::uint32_t place, LaneNumbers& need) const {
  const std::uint32_t* const touches = touches_.data() + place * 2 * lanes_;
  for (std::size_t lane = 0; lane < lanes_; ++lane) need[lane] = std::max(need[lane], touches[lane]);
}

void Places::before_writing(std::uint32_t place, LaneNumbers& need) const {
  const std::uint32_t* const touches = touches_.data() + place * 2 * lanes_;
  for (std::size_t lane = 0; lane < lanes_; ++lane)
    need[lane] = std::max({need[lane], touches[lane], touches[lanes_ + lane]});
}

void Places::was_read(std::uint32_t place, Wait by) { reads(place)[by.lane] = by.number; }

void Places::was_written(std::uint32_t place, Wait by) {
  std::fill_n(writes(place), 2 * lanes_, 0U);
  writes(place)[by.lane] = by.number;
}

std::optional<std::uint32_t> Places::open_within(Bytes offset, Bytes size) const {
  auto at = pieces_.upper_bound(offset);
  if (at != pieces_.begin() && std::prev(at)->second.end > offset) --at;
  for (; at != pieces_.end() && at->first < offset + size; ++at)
    if (states_[at->second.place].open) return at->second.place;
  return std::nullopt;
}

bool Segments::reserve(Bytes offset, Bytes size) {
  if (size == Bytes{}) return true;
  Bytes first = offset, end = offset + size;
  auto after = ranges_.lower_bound(first);
  if (after != ranges_.end() && after->first < end) return false;
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->second > first) return false;
    if (before->second == first) {
      first = before->first;
      ranges_.erase(before);
    }
  }
  if (after != ranges_.end() && after->first == end) {
    end = after->second;
    ranges_.erase(after);
  }
  ranges_.emplace(first, end);
  return true;
}

bool Segments::release(Bytes offset, Bytes size) {
  if (size == Bytes{}) return true;
  if (!contain(offset, size)) return false;
  const auto at = std::prev(ranges_.upper_bound(offset));
  const auto [first, end] = *at;
  ranges_.erase(at);
  if (first < offset) ranges_.emplace(first, offset);
  if (offset + size < end) ranges_.emplace(offset + size, end);
  return true;
}

bool Segments::overlap(Bytes offset, Bytes size) const {
  const auto after = ranges_.lower_bound(offset + size);
  return after != ranges_.begin() && std::prev(after)->second > offset;
}

bool Segments::contain(Bytes offset, Bytes size) const {
  const auto after = ranges_.upper_bound(offset);
  return after != ranges_.begin() && std::prev(after)->second >= offset + size;
}

}  // namespace tidepool
