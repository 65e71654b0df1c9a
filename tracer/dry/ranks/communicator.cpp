#include "tracer/dry/ranks/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <tuple>

namespace tidepool::dry {
namespace {

enum Kind : std::uint32_t { kCollective = 1, kMessage, kSplit, kPart };

/// Mixes a number into a hash (the finalizer of SplitMix64).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  hash += number + 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

struct Choice {
  int colour, key;
};

}  // namespace

std::uint64_t UniqueId::number() const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof hash) {
    std::uint64_t part = 0;
    std::memcpy(&part, bytes.data() + i, sizeof part);
    hash = mixed(hash, part);
  }
  return hash;
}

UniqueId new_unique_id() {
  UniqueId id;
  std::random_device random;
  for (std::size_t i = 0; i < id.bytes.size(); i += sizeof(unsigned)) {
    const unsigned part = random();
    std::memcpy(id.bytes.data() + i, &part, sizeof part);
  }
  return id;
}

Communicator::Communicator(const std::string& meeting, std::uint64_t id, std::uint32_t rank, std::uint32_t ranks)
    : id_{id}, rank_{rank}, ranks_{ranks}, mailbox_{fmt::format("{}/{:016x}", meeting, id), rank} {}

std::uint64_t Communicator::next_collective() {
  const std::lock_guard lock{mutex_};
  return collectives_++;
}
std::uint64_t Communicator::next_sent(std::uint32_t to) {
  const std::lock_guard lock{mutex_};
  return sent_[to]++;
}
std::uint64_t Communicator::next_received(std::uint32_t from) {
  const std::lock_guard lock{mutex_};
  return received_[from]++;
}

void Communicator::contribute(std::uint64_t number, std::span<const std::byte> content) {
  mailbox_.post({kCollective, kEverybody, number}, content);
}

std::vector<std::vector<std::byte>> Communicator::contributions(std::uint64_t number,
                                                                const std::vector<std::uint32_t>& from) {
  std::vector<std::vector<std::byte>> found;
  for (const std::uint32_t rank : from) found.push_back(mailbox_.take(rank, {kCollective, kEverybody, number}));
  return found;
}

void Communicator::send(std::uint32_t to, std::uint64_t number, std::span<const std::byte> content) {
  mailbox_.post({kMessage, to, number}, content);
}

std::vector<std::byte> Communicator::receive(std::uint32_t from, std::uint64_t number) {
  return mailbox_.take(from, {kMessage, rank_, number});
}

std::optional<Communicator::Part> Communicator::split(int colour, int key) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock{mutex_};
    number = splits_++;
  }
  const Choice own{colour, key};
  const MessageTag tag{kSplit, kEverybody, number};
  mailbox_.post(tag, std::as_bytes(std::span{&own, 1}));
  std::vector<std::tuple<int, std::uint32_t>> members;  // key, rank
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::vector<std::byte> said = mailbox_.take(rank, tag);
    Choice choice{};
    std::memcpy(&choice, said.data(), std::min(said.size(), sizeof choice));
    if (choice.colour == colour) members.emplace_back(choice.key, rank);
  }
  if (colour < 0) return {};
  std::sort(members.begin(), members.end());
  const auto at = std::find(members.begin(), members.end(), std::tuple{key, rank_});
  return Part{mixed(mixed(mixed(id_, kSplit), number), static_cast<std::uint64_t>(colour)),
              static_cast<std::uint32_t>(at - members.begin()), static_cast<std::uint32_t>(members.size())};
}

Communicator::Part Communicator::without(std::span<const int> excluded) {
  std::uint64_t hash = mixed(id_, kPart);
  Part part;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (std::find(excluded.begin(), excluded.end(), static_cast<int>(rank)) != excluded.end()) continue;
    if (rank == rank_) part.rank = part.ranks;
    ++part.ranks;
    hash = mixed(hash, rank);
  }
  const std::lock_guard lock{mutex_};
  part.id = mixed(hash, parts_[hash]++);
  return part;
}

std::vector<std::uint32_t> all_ranks(std::uint32_t ranks) {
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

}  // namespace tidepool::dry
