// Messages between the processes of a job on one machine, through files of one folder.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tracer/raw/own_file.hpp"

namespace tidepool::dry {

/// Identity of a message among the messages of its sender.
struct MessageTag {
  std::uint32_t kind = 0;      ///< each kind has sequence numbers of its own
  std::uint32_t to = 0;        ///< the receiving rank; kEverybody: all ranks
  std::uint64_t sequence = 0;  ///< counts from 0 for each kind and receiver
  auto operator<=>(const MessageTag&) const = default;
};
inline constexpr std::uint32_t kEverybody = 0xffffffff;

/// A message that will not come: "rank 1 (process 4711) has ended", "rank 1 did not send the awaited message
/// in 600 s".
struct MailboxError : std::runtime_error {
  using runtime_error::runtime_error;
};

/// The mailbox of one rank in a group of ranks. Each rank appends its messages to a file of its own, which all others
/// read. Posting never waits. Thread safe.
class Mailbox {
 public:
  /// Makes the folder, and in it this rank's file, which must not exist yet.
  /// @param patience  the longest wait for a message; a wait ends earlier if the sender's process ends
  /// @throws std::system_error
  Mailbox(std::string folder, std::uint32_t rank, std::chrono::milliseconds patience = std::chrono::minutes{10});
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// @throws std::system_error
  void post(const MessageTag& tag, std::span<const std::byte> content);
  /// Waits for a message of `from`, which may be this rank. Each message can be taken once.
  /// @throws MailboxError  if the sender's process ended without sending the message, or the message is not there in
  /// time
  std::vector<std::byte> take(std::uint32_t from, const MessageTag& tag);

 private:
  struct Sender {
    off_t read = 0;  ///< bytes of the file that are read
    pid_t process = 0;
    std::map<MessageTag, std::vector<std::byte>> unread;
  };

  std::string path(std::uint32_t rank) const;
  /// Reads the messages that the sender's file has now.
  void read(std::uint32_t from, Sender& sender) const;
  /// Reads the next message. @return whether it is there
  bool read_message(int file, Sender& sender) const;

  std::string folder_;
  std::uint32_t rank_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  raw::OwnFile own_;
  std::map<std::uint32_t, Sender> senders_;
};

}  // namespace tidepool::dry
