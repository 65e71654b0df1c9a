// Buffers that the memory events of a Kineto file begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "traces/import/kineto.hpp"

namespace tidepool {

/// Lifetimes of device memory. A free whose allocation was not seen is of memory that existed before; so is, in one
/// piece, what was never freed: the first event's total says how much of it there was.
/// Files of 2021 give no addresses: there, a free is taken to end the youngest buffer of its size. The bytes in use are
/// exact in any case; which of several equal buffers ends is then a guess.
struct KinetoLifetimes {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Life {
    std::int64_t device = 0;
    std::int64_t address = -1;
    std::int64_t bytes = 0;
    bool born_before = false;
  };
  struct Event {
    std::size_t memory = 0;  ///< index into Kineto::memory
    std::size_t ends = kNone;
    std::size_t begins = kNone;
  };

  std::vector<Life> lives;
  std::vector<Event> events;                  ///< by time, equal times in the order of the file
  std::map<std::int64_t, std::int64_t> kept;  ///< by device: bytes from before that were never freed
  bool by_size = false;                       ///< some events give no address
  std::int64_t lost = 0;                      ///< memory events that must be missing, at least
};

KinetoLifetimes find_lifetimes(const std::vector<KinetoMemory>& memory, std::optional<std::int64_t> only);

}  // namespace tidepool
