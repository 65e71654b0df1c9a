#include "tracer/ranks/recorded_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

/// The key that the parts of a collective or a message share: the communicator, the sender and the receiver of the
/// message (kAll for a collective), and the number.
using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t>;
constexpr std::uint32_t kAll = raw::kNoId;

struct Part {
  std::size_t rank = 0;
  const RankCollective* collective = nullptr;
};

struct Communicator {
  std::size_t size = 0;                        ///< number of its ranks, also of those that wrote no files
  std::map<std::uint32_t, std::size_t> ranks;  ///< the job's ranks, by rank in the communicator
};
using Members = std::map<std::uint64_t, Communicator>;  // by the id of the communicator

class Joining {
 public:
  Joining(std::string folder, std::vector<LoweredRank> ranks, Members members)
      : folder_{std::move(folder)}, ranks_{std::move(ranks)}, members_{std::move(members)} {}

  RecordedJob run() {
    std::map<Key, std::vector<Part>> parts;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      joined_.emplace_back(ranks_[rank].trace.ops().size(), false);
      for (const RankCollective& each : ranks_[rank].collectives) parts[key(rank, each)].push_back({rank, &each});
    }
    for (const auto& [key, found] : parts) join(key, found);
    std::size_t widest = 0;
    for (const auto& [id, communicator] : members_) widest = std::max(widest, communicator.size);
    result_.missing = widest - std::min(widest, ranks_.size());
    order_collectives();
    finish();
    return std::move(result_);
  }

 private:
  /// The rank that a rank of the job has in a communicator; kAll if it has none there.
  std::uint32_t own_rank(std::uint64_t communicator, std::size_t rank) const {
    const auto members = members_.find(communicator);
    if (members != members_.end())
      for (const auto& [own, known] : members->second.ranks)
        if (known == rank) return own;
    return kAll;
  }

  Key key(std::size_t rank, const RankCollective& each) const {
    if (!each.peer) return {each.communicator, kAll, kAll, each.sequence};
    const std::uint32_t own = own_rank(each.communicator, rank), peer = static_cast<std::uint32_t>(*each.peer);
    return each.name == "send" ? Key{each.communicator, own, peer, each.sequence}
                               : Key{each.communicator, peer, own, each.sequence};
  }

  /// The ranks of the job that take part in the collective or message with this key, in ascending order.
  std::vector<std::size_t> group_of(const Key& key) const {
    const auto& [communicator, from, to, number] = key;
    const auto members = members_.find(communicator);
    std::set<std::size_t> ranks;
    if (members != members_.end())
      for (const auto& [own, rank] : members->second.ranks)
        if (from == kAll || own == from || own == to) ranks.insert(rank);
    return {ranks.begin(), ranks.end()};
  }

  /// Whether a message goes from a rank to itself, or a collective is of a communicator with one rank.
  bool needs_one_rank(const Key& key) const {
    const auto& [communicator, from, to, number] = key;
    if (from != kAll || to != kAll) return from == to;
    const auto members = members_.find(communicator);
    return members != members_.end() && members->second.size == 1;
  }

  std::size_t group_index(const std::vector<std::size_t>& ranks) {
    std::vector<JobGroup>& groups = result_.job.job.groups;
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const JobGroup& each) { return each.ranks == ranks; });
    if (known != groups.end()) return static_cast<std::size_t>(known - groups.begin());
    groups.push_back({ranks.size() == ranks_.size() ? "all" : fmt::format("{}", fmt::join(ranks, ",")), ranks});
    return groups.size() - 1;
  }

  void join(const Key& key, std::vector<Part> parts) {
    const std::vector<std::size_t> ranks = group_of(key);
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
    const bool message = std::get<1>(key) != kAll;
    const bool complete = ranks.size() > 1 && std::equal(ranks.begin(), ranks.end(), parts.begin(), parts.end(),
                                                         [](std::size_t a, const Part& b) { return a == b.rank; });
    if (!complete) {
      result_.unmatched += !needs_one_rank(key);
      return;
    }
    JobCollective joined{.name = message ? "send" : parts.front().collective->name, .group = group_index(ranks)};
    Nanos least{std::numeric_limits<std::int64_t>::max()};
    for (const auto& [rank, each] : parts) {
      if (!message && each->name != joined.name)
        refuse("{}: rank {}: collective {} of ranks {} is {}; expected {}, as on rank {}", folder_, rank,
               std::get<3>(key), fmt::join(ranks, ", "), each->name, joined.name, parts.front().rank);
      joined.ops.push_back(each->op);
      joined.input = std::max(joined.input.value_or(Bytes{}), each->input);
      least = std::min(least, ranks_[rank].trace.op(each->op).duration);
      joined_[rank][each->op.index()] = true;
    }
    joined.cost = least;
    result_.job.job.collectives.push_back(std::move(joined));
  }

  /// Orders collectives by the lowest rank of their group, then by that rank's order.
  void order_collectives() {
    Job& job = result_.job.job;
    std::stable_sort(job.collectives.begin(), job.collectives.end(),
                     [&](const JobCollective& a, const JobCollective& b) {
                       return std::pair{job.groups[a.group].ranks.front(), a.ops.front()} <
                              std::pair{job.groups[b.group].ranks.front(), b.ops.front()};
                     });
  }

  /// Adds the ranks to the job, with their traces. Collectives that were not joined become kernels. Ranks of a dry run
  /// seldom wait for each other, so their recorded begins mean nothing: all begin at time 0.
  void finish() {
    Nanos begin = ranks_.front().begin;
    for (const LoweredRank& rank : ranks_) begin = std::min(begin, rank.begin);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto mode = ranks_[rank].trace.data().meta.find("mode");
      const bool dry = mode != ranks_[rank].trace.data().meta.end() && mode->second.starts_with("dry run");
      result_.job.job.ranks.push_back({"", "", dry ? Nanos{} : ranks_[rank].begin - begin});
      TraceData data = ranks_[rank].trace.data();
      for (std::size_t op = 0; op < data.ops.size(); ++op)
        if (data.ops[op].kind == OpKind::kCollective && !joined_[rank][op]) data.ops[op].kind = OpKind::kKernel;
      result_.job.traces.emplace_back(std::move(data));
    }
  }

  std::string folder_;
  std::vector<LoweredRank> ranks_;
  Members members_;
  std::vector<std::vector<bool>> joined_;  // by rank and op
  RecordedJob result_;
};

}  // namespace

std::vector<std::string> notes_of(const RecordedJob& recorded) {
  std::vector<std::string> notes;
  if (recorded.unmatched == 1)
    notes.emplace_back("1 more collective is not in the traces of all its ranks; it is a kernel");
  if (recorded.unmatched > 1)
    notes.push_back(fmt::format("{} more collectives are not in the traces of all their ranks; they are kernels",
                                recorded.unmatched));
  if (recorded.missing == 1) notes.emplace_back("1 more rank left no recording, and is not in the job");
  if (recorded.missing > 1)
    notes.push_back(fmt::format("{} more ranks left no recordings, and are not in the job", recorded.missing));
  return notes;
}

RecordedJob join_recorded(const std::string& folder, std::map<std::size_t, std::vector<raw::Log>> ranks, LoweredOps ops,
                          const std::function<LoweredRank(LoweredRank)>& shorten) {
  Members members;
  std::vector<LoweredRank> lowered;
  for (auto& [rank, logs] : ranks) {
    for (const raw::Log& log : logs)
      for (const raw::Communicator& each : log.communicators) {
        members[each.id].size = each.ranks;
        members[each.id].ranks[each.rank] = rank;
      }
    try {
      lowered.push_back(shorten(lower_rank(logs, ops)));
    } catch (const InputError& error) {
      throw error.at(fmt::format("{}: rank {}", folder, rank));
    }
    logs.clear();
  }
  return Joining{folder, std::move(lowered), std::move(members)}.run();
}

}  // namespace tidepool
