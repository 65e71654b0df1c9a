#include "tracer/dry/ranks/mailbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

namespace tidepool::dry {
namespace {

using Clock = std::chrono::steady_clock;

/// The header of each message in a file. The first message of a file only tells the process of its sender.
struct Envelope {
  MessageTag tag;
  std::int64_t process = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error{error, std::generic_category(), what};
}

void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0700);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail(errno, path);
}

/// The state of a process in /proc: 'Z' if it has ended and no process has waited for it; 0 if /proc does not tell it.
char state_of(pid_t process) {
  const int file = open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 512> text{};
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (got <= 0) return 0;
  const char* const name_end = std::strrchr(text.data(), ')');
  return name_end == nullptr || name_end[1] == 0 ? 'R' : name_end[2];
}

bool has_ended(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const char state = state_of(process);
  return state == 'Z' || state == 'X';
}

}  // namespace

Mailbox::Mailbox(std::string folder, std::uint32_t rank, std::chrono::milliseconds patience)
    : folder_{std::move(folder)}, rank_{rank}, patience_{patience} {
  make_folders(folder_);
  if (const int error = own_.create(path(rank)); error != 0) fail(error, path(rank));
  post({}, {});
}

std::string Mailbox::path(std::uint32_t rank) const { return fmt::format("{}/{}.messages", folder_, rank); }

void Mailbox::post(const MessageTag& tag, std::span<const std::byte> content) {
  const Envelope envelope{tag, getpid(), content.size()};
  std::vector<std::byte> bytes(sizeof envelope + content.size());
  std::memcpy(bytes.data(), &envelope, sizeof envelope);
  std::copy(content.begin(), content.end(), bytes.begin() + sizeof envelope);
  const std::lock_guard lock{mutex_};
  const int error = own_.change([&](int to) { return raw::write_all(to, bytes.data(), bytes.size()); });
  if (error != 0) fail(error, path(rank_));
}

void Mailbox::read(std::uint32_t from, Sender& sender) const {
  // Open only while it is read: the job may close it, and another file gets its number.
  const int file = open(path(from).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // the sender has not made its file yet
  while (read_message(file, sender)) {
  }
  ::close(file);
}

bool Mailbox::read_message(int file, Sender& sender) const {
  Envelope envelope;
  if (pread(file, &envelope, sizeof envelope, sender.read) != static_cast<ssize_t>(sizeof envelope)) return false;
  std::vector<std::byte> content(envelope.bytes);
  const off_t begin = sender.read + static_cast<off_t>(sizeof envelope);
  const ssize_t got = pread(file, content.data(), content.size(), begin);
  if (got != static_cast<ssize_t>(content.size())) return false;  // the sender is writing this message
  const bool first = sender.read == 0;
  sender.read = begin + got;
  sender.process = static_cast<pid_t>(envelope.process);
  if (!first && (envelope.tag.to == rank_ || envelope.tag.to == kEverybody))
    sender.unread.emplace(envelope.tag, std::move(content));
  return true;
}

std::vector<std::byte> Mailbox::take(std::uint32_t from, const MessageTag& tag) {
  using namespace std::chrono_literals;
  const Clock::time_point begin = Clock::now();
  for (std::chrono::microseconds pause = 50us;; pause = std::min<std::chrono::microseconds>(pause * 2, 5ms)) {
    {
      const std::lock_guard lock{mutex_};
      Sender& sender = senders_[from];
      // Asked before read(): if the sender has ended, read() finds all that it sent.
      const bool ended = sender.process != 0 && has_ended(sender.process);
      read(from, sender);
      if (const auto found = sender.unread.find(tag); found != sender.unread.end()) {
        std::vector<std::byte> content = std::move(found->second);
        sender.unread.erase(found);
        return content;
      }
      if (ended) throw MailboxError{fmt::format("rank {} (process {}) has ended", from, sender.process)};
    }
    if (Clock::now() - begin > patience_)
      throw MailboxError{fmt::format("rank {} did not send the awaited message in {:g} s", from,
                                     std::chrono::duration<double>(patience_).count())};
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tidepool::dry
