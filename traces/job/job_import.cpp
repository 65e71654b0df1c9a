#include "traces/job/job_import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/tar.hpp"
#include "traces/import/torch_et_program.hpp"

namespace tidepool {

namespace {

/// No job has more ranks. A number in the name of a file may be larger.
constexpr std::int64_t kMostRanks = 1 << 20;

bool is_of(const Input& input, std::string_view format) {
  try {
    return find_importer(input, "auto").name == format;
  } catch (const InputError&) {
    return false;  // the file is in no known form
  }
}

/// The first number in a file's name.
std::optional<std::int64_t> number_in(const std::string& file) {
  const std::string name = std::filesystem::path{file}.filename().string();
  const std::size_t first = name.find_first_of("0123456789");
  if (first == std::string::npos) return {};
  return parse_whole(name.substr(first, name.find_first_not_of("0123456789", first) - first));
}

/// Calls each(input, number_in(name)) for every file of this format in a folder (without its subfolders) or in a tar
/// archive, by name.
/// @param expected  for messages: what the path should be
template <class Each>
void for_each_file(const std::string& path, std::string_view format, std::string_view expected, const Each& each) {
  const auto offer = [&](const Input& input, const std::string& name) {
    if (is_of(input, format)) each(input, number_in(name));
  };
  if (std::filesystem::is_directory(path)) {
    std::error_code error;
    const std::vector<std::string> files = files_in(path, error);
    if (error) refuse("{}: cannot be read: {}; expected {}", path, error.message(), expected);
    for (const std::string& file : files) offer(read_input(file), file);
    return;
  }
  const Input archive = read_input(path);
  std::vector<TarFile> files = tar_files(archive);
  std::sort(files.begin(), files.end(), [](const TarFile& a, const TarFile& b) { return a.name < b.name; });
  for (const TarFile& file : files)
    offer(decompressed(Input{fmt::format("{}:{}", path, file.name), file.bytes}), file.name);
}

/// Sorts the profiles by rank. @throws InputError  if they are not those of ranks 0 to n - 1
void sort_by_rank(const std::string& path, std::vector<RankProfile>& profiles) {
  const bool recorded =
      std::all_of(profiles.begin(), profiles.end(), [](const RankProfile& each) { return each.kineto.rank; });
  for (RankProfile& each : profiles) {
    if (!recorded) each.kineto.rank = each.number;
    if (!each.kineto.rank || *each.kineto.rank < 0 || *each.kineto.rank >= kMostRanks)
      refuse("{}: no number of a rank, in \"distributedInfo\" or in the file's name; expected one", each.file);
  }
  std::stable_sort(profiles.begin(), profiles.end(),
                   [](const RankProfile& a, const RankProfile& b) { return *a.kineto.rank < *b.kineto.rank; });
  std::vector<std::int64_t> ranks;
  for (const RankProfile& each : profiles) ranks.push_back(*each.kineto.rank);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<std::int64_t>(i))
      refuse("{}: {} {}; expected 0 to {}, each once", path, ranks.size() == 1 ? "rank" : "ranks",
             fmt::join(ranks, ", "), ranks.size() - 1);
  for (const RankProfile& each : profiles)
    if (const auto size = each.kineto.world_size; size && *size != static_cast<std::int64_t>(ranks.size()))
      refuse("{}: {} of {} ranks; expected all, the \"world_size\" of {}", path, ranks.size(), *size, each.file);
}

/// One group's collectives on one of its ranks, in the rank's order.
using Sequence = std::vector<const KinetoCollective*>;

class Joining {
 public:
  explicit Joining(const std::vector<RankProfile>& profiles) : profiles_{profiles} {
    for (const RankProfile& profile : profiles_) {
      try {
        ranks_.push_back(to_rank(profile.kineto, profile.operands ? &*profile.operands : nullptr));
      } catch (const InputError& error) {
        throw error.at(profile.file);
      }
    }
  }

  LoadedJob run() {
    find_sequences();
    for (const auto& [ranks, sequences] : sequences_) join(ranks, sequences);
    order_collectives();
    Nanos begin = ranks_.front().begin;
    for (const KinetoRank& rank : ranks_) begin = std::min(begin, rank.begin);
    for (KinetoRank& rank : ranks_) {
      job_.ranks.push_back({"", "", rank.begin - begin});
      traces_.push_back(std::move(rank.trace));
    }
    return {std::move(job_), std::move(traces_)};
  }

 private:
  /// The ranks of a collective's group. If the collective names no ranks, or only some and "...", it belongs to all
  /// ranks.
  std::vector<std::size_t> group_of(const KinetoCollective& collective, std::size_t rank) const {
    std::vector<std::size_t> all(profiles_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::string_view text = collective.group_ranks;
    if (text.find("...") != std::string_view::npos || text.empty() || text == "[]") return all;
    std::vector<std::size_t> ranks;
    text.remove_prefix(text.starts_with('[') ? 1 : 0);
    text.remove_suffix(text.ends_with(']') ? 1 : 0);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      std::string_view number = text.substr(0, end);
      number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
      const std::optional<std::int64_t> other = parse_whole(number);
      if (!other || *other < 0 || *other >= static_cast<std::int64_t>(all.size()))
        refuse("{}: {} is of the group {}; expected ranks from 0 to {}, which are recorded", profiles_[rank].file,
               collective.name, excerpt(collective.group_ranks), all.size() - 1);
      ranks.push_back(static_cast<std::size_t>(*other));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (!std::binary_search(ranks.begin(), ranks.end(), rank))
      refuse("{}: {} is of the group {}; expected one with this rank, {}", profiles_[rank].file, collective.name,
             excerpt(collective.group_ranks), rank);
    return ranks;
  }

  void find_sequences() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (const KinetoCollective& collective : ranks_[rank].collectives) {
        if (collective.name.starts_with("send") || collective.name.starts_with("recv"))
          refuse("{}: '{}' goes from one rank to another; expected only what all ranks of a group take part in",
                 profiles_[rank].file, collective.name);
        sequences_[group_of(collective, rank)][rank].push_back(&collective);
      }
  }

  void join(const std::vector<std::size_t>& members, const std::map<std::size_t, Sequence>& sequences) {
    const std::string name = members.size() == ranks_.size() ? "all" : fmt::format("{}", fmt::join(members, ","));
    const std::size_t first = members.front();
    static const Sequence kNothing;
    const auto of = [&](std::size_t rank) -> const Sequence& {
      const auto found = sequences.find(rank);
      return found == sequences.end() ? kNothing : found->second;
    };
    for (const std::size_t rank : members)
      if (of(rank).size() != of(first).size())
        refuse("{}: {} collectives of group '{}'; expected {}, as in {}", profiles_[rank].file, of(rank).size(), name,
               of(first).size(), profiles_[first].file);
    for (std::size_t i = 0; i < of(first).size(); ++i) {
      JobCollective joined{.name = of(first)[i]->name, .group = job_.groups.size(), .ops = {}};
      Nanos least{std::numeric_limits<std::int64_t>::max()}, first_end = least, last_end{};
      for (const std::size_t rank : members) {
        const KinetoCollective& each = *of(rank)[i];
        if (each.name != joined.name)
          refuse("{}: collective {} of group '{}' is {}; expected {}, as in {}", profiles_[rank].file, i, name,
                 each.name, joined.name, profiles_[first].file);
        const Op& op = ranks_[rank].trace.op(each.op);
        const Nanos end = ranks_[rank].begin + op.start + op.duration;
        joined.ops.push_back(each.op);
        least = std::min(least, op.duration);
        last_end = rank == first ? end : std::max(last_end, end);
        first_end = std::min(first_end, end);
        if (each.input_bytes >= 0) joined.input = std::max(joined.input.value_or(Bytes{}), Bytes{each.input_bytes});
      }
      joined.cost = least;
      job_.clock_residual = std::max(job_.clock_residual, last_end - first_end);
      job_.collectives.push_back(std::move(joined));
    }
    job_.groups.push_back({name, members});
  }

  /// Orders collectives by the lowest rank of their group, then by that rank's order.
  void order_collectives() {
    const auto key = [&](const JobCollective& each) {
      return std::pair{job_.groups[each.group].ranks.front(), each.ops.front()};
    };
    std::stable_sort(job_.collectives.begin(), job_.collectives.end(),
                     [&](const JobCollective& a, const JobCollective& b) { return key(a) < key(b); });
  }

  const std::vector<RankProfile>& profiles_;
  std::vector<KinetoRank> ranks_;
  std::map<std::vector<std::size_t>, std::map<std::size_t, Sequence>> sequences_;  // by members of a group, by rank
  Job job_;
  std::vector<Trace> traces_;
};

std::vector<JobReader>& job_readers() {
  static std::vector<JobReader> readers;
  return readers;
}

}  // namespace

bool holds_several_files(const std::string& path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) return true;
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return false;
  bool tar = false;
  struct Enough {};
  try {
    read_input(path, [&](const Input& head) {
      tar = is_tar(head.bytes());
      throw Enough{};
    });
  } catch (const Enough&) {
  }
  return tar;
}

bool holds_profiles(const std::string& path) try {
  bool any = false;
  for_each_file(path, "kineto", "a folder of profiles", [&](const Input&, auto) { any = true; });
  return any;
} catch (const InputError&) {
  return false;
}

std::vector<RankProfile> read_rank_profiles(const std::string& path) {
  std::vector<RankProfile> profiles;
  for_each_file(path, "kineto", "a folder of profiles", [&](const Input& input, auto number) {
    profiles.push_back({.file = input.path(), .kineto = parse_kineto(input), .number = number});
  });
  if (profiles.empty()) refuse("{}: no Kineto file; expected one for each rank", path);
  return profiles;
}

void add_operands(const std::string& path, std::vector<RankProfile>& profiles, const std::string& with) {
  sort_by_rank(path, profiles);
  std::size_t found = 0;
  for_each_file(with, "torch-et", "a folder or a tar archive with the execution trace of each rank",
                [&](const Input& input, std::optional<std::int64_t> rank) {
                  if (!rank || *rank >= static_cast<std::int64_t>(profiles.size()) ||
                      profiles[static_cast<std::size_t>(*rank)].operands)
                    refuse("{}: an execution trace of {}; expected one of each rank, 0 to {}", input.path(),
                           rank ? fmt::format("rank {}", *rank) : "no rank", profiles.size() - 1);
                  RankProfile& profile = profiles[static_cast<std::size_t>(*rank)];
                  try {
                    profile.operands = find_operands(parse_execution_trace(input), profile.kineto);
                  } catch (const InputError& error) {
                    throw error.at(input.path());
                  }
                  ++found;
                });
  if (found != profiles.size())
    refuse("{}: {} execution traces; expected {}, one for each rank", with, found, profiles.size());
}

LoadedJob join_ranks(const std::string& path, std::vector<RankProfile> profiles) {
  sort_by_rank(path, profiles);
  return Joining{profiles}.run();
}

RegisterJobReader::RegisterJobReader(JobReader reader) { job_readers().push_back(std::move(reader)); }

std::optional<ReadJob> read_recorded_job(const std::string& path, const std::string& format) {
  if (std::error_code error; !std::filesystem::is_directory(path, error)) return {};
  const std::string name = find_folder_importer(path, format).name;
  for (const JobReader& reader : job_readers())
    if (reader.format == name) return reader.read(path);
  return {};
}

}  // namespace tidepool
