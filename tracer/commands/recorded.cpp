#include "tracer/commands/recorded.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tracer/raw/reader.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;

/// The number of iterations whose begin and end are both in the log.
std::size_t whole_steps(const raw::Log& log) {
  std::set<std::uint64_t> begun;
  std::size_t ended = 0;
  for (const raw::Range& range : log.ranges)
    if (range.action == raw::RangeAction::kBegin && range.meaning == raw::Meaning::kIteration)
      begun.insert(range.id);
    else if (range.action == raw::RangeAction::kEnd)
      ended += begun.erase(range.id);
  return ended;
}

/// A process in which the hook recorded ops.
struct Training {
  std::int64_t begin = 0, end = 0;  // on CLOCK_MONOTONIC_RAW
  std::vector<std::string> files;
};

void extend(Training& training, const raw::Log& log) {
  const auto [first, last] = std::minmax_element(
      log.ops.begin(), log.ops.end(), [](const auto& a, const auto& b) { return a.record.start < b.record.start; });
  training.begin = training.end == 0 ? first->record.start : std::min(training.begin, first->record.start);
  training.end = std::max(training.end, last->record.end);
}

/// The files of trainings that ran one after the other; empty if two ran at the same time, or if there are fewer.
std::vector<std::vector<std::string>> in_a_row(std::vector<Training> trainings) {
  std::sort(trainings.begin(), trainings.end(), [](const Training& a, const Training& b) { return a.begin < b.begin; });
  std::vector<std::vector<std::string>> files;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    if (i > 0 && trainings[i].begin < trainings[i - 1].end) return {};
    files.push_back(std::move(trainings[i].files));
  }
  if (files.size() < 2) files.clear();
  return files;
}

}  // namespace

Recorded look_at_recorded(const fs::path& raw) {
  Recorded found;
  if (!fs::exists(raw)) return found;
  std::set<std::string> ranks;
  std::map<std::uint32_t, Training> trained;
  std::map<std::uint32_t, std::vector<std::string>> files;
  std::optional<fs::file_time_type> first_said;
  for (const std::string& path : files_in(raw.string())) {
    if (path.ends_with(".said")) {
      const fs::file_time_type written = fs::last_write_time(path);
      if (first_said && *first_said <= written)
        continue;  // other ranks fail because of the first, and so does torchrun
      first_said = written;
      std::ifstream file{path};
      std::getline(file, found.said);
      continue;
    }
    found.files = true;
    const Input input = read_input(path);
    if (!raw::has_header(input.bytes())) continue;
    const raw::Log log = raw::read_raw(input);
    files[log.header.process].push_back(path);
    found.work = found.work || !log.kernels.empty() || !log.copies.empty() || !log.memsets.empty() ||
                 !log.ops.empty() || (log.header.source != raw::Source::kTorch && !log.framework_memory.empty());
    for (const raw::Info& info : log.infos)
      if (log.text(info.key) == "rank") ranks.insert(log.text(info.value));
    for (const raw::Communicator& each : log.communicators) found.several_ranks = found.several_ranks || each.ranks > 1;
    if (log.header.source != raw::Source::kTorch) continue;
    found.hooked = true;
    if (!log.ops.empty()) extend(trained[log.header.process], log);
    found.whole_steps = std::max(found.whole_steps, whole_steps(log));
  }
  found.several_ranks = found.several_ranks || ranks.size() > 1;
  found.trained = trained.size();
  found.steps = found.trained > 0;
  std::vector<Training> trainings;
  for (auto& [process, training] : trained) {
    training.files = std::move(files[process]);
    trainings.push_back(std::move(training));
  }
  found.in_a_row = in_a_row(std::move(trainings));
  return found;
}

}  // namespace tidepool
