#include "tracer/commands/recorded.hpp"

#include <algorithm>
#include <fstream>
#include <set>

#include "tracer/raw/reader.hpp"
#include "traces/folder.hpp"
#include "traces/input.hpp"

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

}  // namespace

Recorded look_at_recorded(const fs::path& raw) {
  Recorded found;
  if (!fs::exists(raw)) return found;
  std::set<std::string> ranks;
  std::set<std::uint32_t> trained;
  for (const std::string& path : files_in(raw.string())) {
    if (path.ends_with(".said")) {
      std::ifstream file{path};
      std::getline(file, found.said);
      continue;
    }
    found.files = true;
    const Input input = read_input(path);
    if (!raw::has_header(input.bytes())) continue;
    const raw::Log log = raw::read_raw(input);
    found.work = found.work || !log.kernels.empty() || !log.copies.empty() || !log.memsets.empty() || !log.ops.empty();
    for (const raw::Info& info : log.infos)
      if (log.text(info.key) == "rank") ranks.insert(log.text(info.value));
    for (const raw::Communicator& each : log.communicators) found.several_ranks = found.several_ranks || each.ranks > 1;
    if (log.header.source != raw::Source::kTorch) continue;
    found.hooked = true;
    if (!log.ops.empty()) trained.insert(log.header.process);
    found.whole_steps = std::max(found.whole_steps, whole_steps(log));
  }
  found.several_ranks = found.several_ranks || ranks.size() > 1;
  found.trained = trained.size();
  found.steps = found.trained > 0;
  return found;
}

}  // namespace tidepool
