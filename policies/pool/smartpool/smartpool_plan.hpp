// SmartPool's plan: the start of an iteration, and the places of its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// One malloc or free that SmartPool has seen, in the order of the host.
struct SmartPoolEvent {
  static constexpr std::size_t kIsMalloc = static_cast<std::size_t>(-1);

  /// A malloc's size in bytes, or a free's distance to its malloc in events. Repetition compares this number, so a size
  /// and an equal distance count as equal.
  std::int64_t signature = 0;
  std::size_t malloc = kIsMalloc;  ///< for a free: the event that allocated the block
  bool operator==(const SmartPoolEvent&) const = default;
};

/// Events [location, location + length) are repeated directly afterwards.
struct SmartPoolPeriod {
  std::size_t location = 0;
  std::size_t length = 0;  ///< 0: nothing repeats
  bool operator==(const SmartPoolPeriod&) const = default;
};

/// The longest part that occurs twice in a row, the first one among equals; the last event of a part is not compared.
/// The authors compare all pairs of parts, O(n^3). This finds the same part, unless their search would read beyond the
/// last event. For each length, it visits every (length - 1)-th event: O(n log n) unless much of the string is equal.
SmartPoolPeriod longest_repetition(std::span<const SmartPoolEvent> events);

/// The iteration that SmartPool uses: the longest repetition, cut to the longest repetition inside it if that has more
/// than 50 events; none if it has at most 100 events.
SmartPoolPeriod find_smartpool_period(std::span<const SmartPoolEvent> events);

enum class SmartPoolFit : std::uint8_t { kFirst, kBest };

/// A block of the iteration and its place.
struct SmartPoolSlot {
  std::size_t malloc = 0;  ///< event within the iteration
  Bytes size;
  Bytes offset;        ///< in the pool
  bool cross = false;  ///< not freed within the iteration: a second copy is at offset + SmartPoolPlan::cross
};

struct SmartPoolPlan {
  std::vector<SmartPoolSlot> slots;
  Bytes cross;   ///< height of one copy of the blocks that live into the next iteration; the pool begins with two
  Bytes height;  ///< of the whole pool
};

/// Places the blocks of one iteration, largest first, among equals the first one. A block goes where no block placed
/// before conflicts with it: into the lowest hole (kFirst) or the smallest one (kBest), else on top. With kBest the
/// hole below the lowest conflict is used only if the conflicts have no hole between them. Blocks that outlive the
/// iteration are placed separately, twice, below all others. Nothing is aligned. O(n^2).
/// Blocks of no bytes get no slot; the authors' arithmetic would wrap around for them. A block of one byte at offset 0
/// counts as a conflict; the authors' code overlooks it.
SmartPoolPlan plan_smartpool(std::span<const SmartPoolEvent> events, SmartPoolPeriod period, SmartPoolFit fit);

}  // namespace tidepool
