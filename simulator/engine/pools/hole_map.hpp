// Arena whose caller may choose the address of a block.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "simulator/pool.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// The holes of [0, capacity). Cost of each operation: O(log holes), but place_above() walks the holes above its limit.
class HoleMap {
 public:
  explicit HoleMap(Bytes capacity) {
    if (capacity > Bytes{}) add({}, capacity);
  }

  /// Takes [address, address + size) if all of it is free. `size` > 0.
  bool place_at(Bytes address, Bytes size) {
    const auto above = holes_.upper_bound(address);
    if (above == holes_.begin()) return false;
    const auto hole = std::prev(above);
    if (hole->first + hole->second < address + size) return false;
    take(hole, address, size);
    return true;
  }

  /// Takes the lowest place at or above `limit`; none if there is no place.
  std::optional<Bytes> place_above(Bytes limit, Bytes size) {
    auto hole = holes_.upper_bound(limit);
    if (hole != holes_.begin()) --hole;
    for (; hole != holes_.end(); ++hole) {
      const Bytes address = std::max(hole->first, limit);
      if (hole->first + hole->second < address + size) continue;
      take(hole, address, size);
      return address;
    }
    return {};
  }

  /// Takes the low part of the smallest hole that fits, the lowest among equals.
  std::optional<Bytes> place_best(Bytes size) {
    const auto found = sizes_.lower_bound({size, Bytes{}});
    if (found == sizes_.end()) return {};
    const Bytes address = found->second;
    take(holes_.find(address), address, size);
    return address;
  }

  /// Takes the high part of the hole that place_best() would take.
  std::optional<Bytes> place_best_high(Bytes size) {
    const auto found = sizes_.lower_bound({size, Bytes{}});
    if (found == sizes_.end()) return {};
    const Bytes address = found->second + (found->first - size);
    take(holes_.find(found->second), address, size);
    return address;
  }

  /// Calls visit(Bytes address) for every hole of at least `size`, the smallest first.
  template <class Visit>
  void for_each_hole(Bytes size, Visit visit) const {
    for (auto hole = sizes_.lower_bound({size, Bytes{}}); hole != sizes_.end(); ++hole) visit(hole->second);
  }

  /// Calls visit(Bytes address, Bytes size) for every hole, the lowest first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [address, size] : holes_) visit(address, size);
  }

  /// Frees a block that was placed.
  void release(const Block& block) {
    Bytes address = block.offset, size = block.size;
    auto above = holes_.lower_bound(address);
    if (above != holes_.begin())
      if (const auto below = std::prev(above); below->first + below->second == address) {
        address = below->first;
        size += below->second;
        erase(below);
      }
    if (above != holes_.end() && above->first == block.offset + block.size) {
      size += above->second;
      erase(above);
    }
    add(address, size);
  }

  Bytes largest() const { return sizes_.empty() ? Bytes{} : sizes_.rbegin()->first; }

 private:
  using Hole = std::map<Bytes, Bytes>::iterator;

  void take(Hole hole, Bytes address, Bytes size) {
    const auto [first, length] = *hole;
    erase(hole);
    if (address > first) add(first, address - first);
    if (first + length > address + size) add(address + size, first + length - address - size);
  }
  void add(Bytes address, Bytes size) {
    holes_.emplace(address, size);
    sizes_.emplace(size, address);
  }
  void erase(Hole hole) {
    sizes_.erase({hole->second, hole->first});
    holes_.erase(hole);
  }

  std::map<Bytes, Bytes> holes_;             // size by address
  std::set<std::pair<Bytes, Bytes>> sizes_;  // (size, address) of each hole
};

}  // namespace tidepool
