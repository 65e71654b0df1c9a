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

/// Lifetimes of device memory. A free without a recorded allocation ends a buffer from before the recording. All older
/// memory of a device that was never freed is one buffer; its size follows from the total in the first event.
/// Files of 2021 have no addresses: in these, a free ends the youngest buffer of its size. With several buffers of this
/// size, the choice is a guess, but the bytes in use are exact.
struct KinetoLifetimes {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Life {
    std::int64_t device = 0;
    std::int64_t address = -1;
    std::int64_t bytes = 0;
    bool born_before = false;
  };
  struct Event {
    std::size_t memory = 0;      ///< index into Kineto::memory
    std::size_t ends = kNone;    ///< index of the life that ends
    std::size_t begins = kNone;  ///< index of the life that begins, after the other has ended
  };

  std::vector<Life> lives;
  std::vector<Event> events;                  ///< by time, equal times in the order of the file
  std::map<std::int64_t, std::int64_t> kept;  ///< by device: bytes from before that were never freed
  bool by_size = false;                       ///< some events give no address
  std::int64_t lost = 0;                      ///< least number of memory events that must be missing
};

KinetoLifetimes find_lifetimes(const std::vector<KinetoMemory>& memory, std::optional<std::int64_t> only);

}  // namespace tidepool
