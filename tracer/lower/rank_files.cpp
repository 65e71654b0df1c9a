#include "tracer/lower/rank_files.hpp"

#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

std::optional<std::size_t> rank_of(const std::vector<const raw::Log*>& files) {
  std::optional<raw::Communicator> widest;
  for (const raw::Log* const log : files) {
    for (const raw::Info& info : log->infos)
      if (log->text(info.key) == "rank")
        if (const auto rank = parse_whole(log->text(info.value)); rank && *rank >= 0 && *rank < kMostRanks)
          return static_cast<std::size_t>(*rank);
    for (const raw::Communicator& each : log->communicators)
      if (!widest || each.ranks > widest->ranks) widest = each;
  }
  if (!widest) return {};
  return widest->rank;
}

/// The rank of each process that has one.
std::map<std::uint32_t, std::size_t> ranks_of(const std::vector<raw::Log>& logs) {
  std::map<std::uint32_t, std::vector<const raw::Log*>> processes;
  for (const raw::Log& log : logs) processes[log.header.process].push_back(&log);
  std::map<std::uint32_t, std::size_t> ranks;
  for (const auto& [process, files] : processes)
    if (const auto rank = rank_of(files)) ranks[process] = *rank;
  return ranks;
}

}  // namespace

std::size_t count_ranks(const std::vector<raw::Log>& logs) {
  std::set<std::size_t> ranks;
  for (const auto& [process, rank] : ranks_of(logs)) ranks.insert(rank);
  return ranks.size();
}

std::map<std::size_t, std::vector<raw::Log>> by_rank(const std::string& folder, std::vector<raw::Log> logs) {
  const std::map<std::uint32_t, std::size_t> rank_of_process = ranks_of(logs);
  std::map<std::size_t, std::vector<raw::Log>> ranks;
  for (raw::Log& log : logs)
    if (const auto found = rank_of_process.find(log.header.process); found != rank_of_process.end())
      ranks[found->second].push_back(std::move(log));
  std::vector<std::size_t> numbers;
  for (const auto& [rank, files] : ranks) numbers.push_back(rank);
  if (!numbers.empty() && numbers.back() + 1 != numbers.size())
    refuse("{}: recordings of rank{} {}; expected one of each rank, 0 to {}", folder, numbers.size() == 1 ? "" : "s",
           fmt::join(numbers, ", "), numbers.back());
  return ranks;
}

}  // namespace tidepool
