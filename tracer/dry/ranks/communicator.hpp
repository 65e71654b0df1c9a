// A group of ranks that exchange messages: a communicator in NCCL's terms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/dry/ranks/mailbox.hpp"
#include "tracer/dry/ranks/reduction.hpp"

namespace tidepool::dry {

/// Identity of a communicator: random bytes, which the program passes to all ranks before the communicator is made.
struct UniqueId {
  std::array<char, 128> bytes{};
  std::uint64_t number() const;  ///< the same for equal ids
};
UniqueId new_unique_id();

/// A communicator as one of its ranks sees it. Thread safe.
class Communicator {
 public:
  /// @param meeting  a folder that all ranks of the job share
  /// @throws std::system_error  if this rank's mailbox cannot be made there
  Communicator(const std::string& meeting, std::uint64_t id, std::uint32_t rank, std::uint32_t ranks);

  std::uint64_t id() const { return id_; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }

  /// The number of this rank's next collective, or of its next message to or from a rank: 0 in the first call, one more
  /// in each later call.
  std::uint64_t next_collective();
  std::uint64_t next_sent(std::uint32_t to);
  std::uint64_t next_received(std::uint32_t from);

  /// Posts this rank's contribution to collective `number` for all ranks. @throws std::system_error
  void contribute(std::uint64_t number, std::span<const std::byte> content);
  /// Waits for the contributions of the ranks `from`, and returns them in this order. Each can be taken once.
  /// @throws MailboxError
  std::vector<std::vector<std::byte>> contributions(std::uint64_t number, const std::vector<std::uint32_t>& from);
  /// Posts this rank's message `number` for the rank `to`. @throws std::system_error
  void send(std::uint32_t to, std::uint64_t number, std::span<const std::byte> content);
  /// Waits for message `number` of the rank `from`. @throws MailboxError
  std::vector<std::byte> receive(std::uint32_t from, std::uint64_t number);

  /// A communicator of some of the ranks: its identity, this rank's number in it, and its number of ranks.
  struct Part {
    std::uint64_t id = 0;
    std::uint32_t rank = 0, ranks = 0;
  };
  /// The part of all ranks that give the same colour, ordered by key, then by rank; nothing for a negative colour. All
  /// ranks must call split(), which waits for their calls. @throws MailboxError
  std::optional<Part> split(int colour, int key);
  /// The part of the ranks that are not excluded. This rank must be one of them. Does not wait. All ranks of the part
  /// must call without(); the others need not.
  Part without(std::span<const int> excluded);

 private:
  std::uint64_t id_;
  std::uint32_t rank_, ranks_;
  Mailbox mailbox_;
  std::mutex mutex_;
  std::uint64_t collectives_ = 0, splits_ = 0;
  std::map<std::uint64_t, std::uint64_t> parts_;  ///< calls of without(), by a hash of the ranks that were left
  std::map<std::uint32_t, std::uint64_t> sent_, received_;
};

/// The ranks 0 to ranks - 1.
std::vector<std::uint32_t> all_ranks(std::uint32_t ranks);

}  // namespace tidepool::dry
