#include "simulator/solvers/packing/layout_places.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tidepool {

LayoutPlaces::LayoutPlaces(LayoutFile layout, Bytes fallback, Bytes capacity, bool live)
    : layout_{std::move(layout)},
      fallback_{fallback},
      capacity_{capacity},
      holes_{capacity},
      follower_{layout_.requests, layout_.existing},
      in_step_{!live} {
  for (std::size_t i = 0; live && i < layout_.existing; ++i)
    if (const PlannedRequest& request = layout_.requests[i]; outlives_step(request))
      existing_.emplace(request.size, request.offset);
}

/// Whether no planned request of the step overlaps the place of `existing`. O(requests).
bool LayoutPlaces::outlives_step(const PlannedRequest& existing) const {
  const auto first = layout_.requests.begin() + static_cast<std::ptrdiff_t>(layout_.existing);
  return std::none_of(first, layout_.requests.end(), [&](const PlannedRequest& request) {
    return request.offset < existing.offset + existing.size && existing.offset < request.offset + request.size;
  });
}

std::optional<Block> LayoutPlaces::place(Bytes size) {
  if (size > capacity_) return {};
  const Bytes rounded = std::max(round_up(size, layout_.alignment), layout_.alignment);
  const std::optional<std::size_t> which = follower_.next(size);
  if (!in_step_) {
    in_order_ = which && *which > layout_.existing && *which == last_ + 1 ? in_order_ + 1 : 0;
    last_ = which.value_or(0);
    in_step_ = in_order_ >= Follower::kWindow;
    if (const std::optional<Block> block = place_existing(size, rounded)) return block;
  }
  if (which) {
    const Bytes planned = layout_.requests[*which].offset;
    if (holes_.place_at(planned, rounded)) {
      ++counts_.planned;
      return Block{planned, rounded};
    }
  }
  const std::optional<Bytes> address = place_elsewhere(rounded);
  if (!address) return {};
  ++counts_.fallback;
  if (*address + rounded > limit()) ++counts_.beyond;
  return Block{*address, rounded};
}

std::optional<Block> LayoutPlaces::place_existing(Bytes size, Bytes rounded) {
  const auto [first, last] = existing_.equal_range(size);
  for (auto it = first; it != last; ++it)
    if (holes_.place_at(it->second, rounded)) {
      ++counts_.planned;
      return Block{it->second, rounded};
    }
  return {};
}

std::optional<Bytes> LayoutPlaces::place_elsewhere(Bytes size) {
  const Bytes height = round_up(layout_.height, layout_.alignment);
  const std::optional<Bytes> above = holes_.place_above(height, size);
  if (above && *above + size <= limit()) return above;
  const std::optional<Bytes> below = least_missed(height, size);
  if (!below) return above;
  if (above) holes_.release({*above, size});
  holes_.place_at(*below, size);
  return below;
}

/// The hole below `height` that the plan needs last, the smallest among equals.
std::optional<Bytes> LayoutPlaces::least_missed(Bytes height, Bytes size) const {
  std::optional<Bytes> best;
  std::size_t longest = 0;
  holes_.for_each_hole(size, [&](Bytes address) {
    if (address + size > height || longest == follower_.length()) return;
    const std::size_t unused = follower_.unused_for(address, size, follower_.length());
    if (best && unused <= longest) return;
    best = address;
    longest = unused;
  });
  return best;
}

}  // namespace tidepool
