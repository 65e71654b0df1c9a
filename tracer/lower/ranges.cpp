#include "tracer/lower/ranges.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tidepool {
namespace {

RangeMeaning to_meaning(raw::Meaning meaning) {
  switch (meaning) {
    case raw::Meaning::kIteration:
      return RangeMeaning::kIteration;
    case raw::Meaning::kPhase:
      return RangeMeaning::kPhase;
    case raw::Meaning::kModule:
      return RangeMeaning::kModule;
    default:
      return RangeMeaning::kByName;
  }
}

void end_range(GpuRange& range, std::int64_t time) {
  if (!range.end) range.end = std::max(range.start, time);
}

}  // namespace

std::vector<GpuRange> ranges(const ProcessLog& process) {
  using raw::RangeAction;
  struct Moment {
    std::int64_t time;
    const raw::Range* record;
    const raw::Log* log;
  };
  std::vector<Moment> moments;
  for (const FittedLog& file : process.files)
    for (const raw::Range& record : file.log.ranges)
      moments.push_back({file.clock.common(record.time), &record, &file.log});
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });

  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<GpuRange> found;
  std::map<std::uint32_t, std::vector<std::size_t>> pushed;  // by thread
  std::map<std::uint64_t, std::size_t> begun;                // by id
  std::size_t iteration = kNone;
  for (const auto& [time, record, log] : moments) {
    const auto open = [&, at = time, range = record, file = log] {
      found.push_back({at, std::nullopt, file->text(range->name), to_meaning(range->meaning)});
      return found.size() - 1;
    };
    switch (record->action) {
      case RangeAction::kPush:
        pushed[record->thread].push_back(open());
        break;
      case RangeAction::kPop:
        if (std::vector<std::size_t>& stack = pushed[record->thread]; !stack.empty()) {
          end_range(found[stack.back()], time);
          stack.pop_back();
        }
        break;
      case RangeAction::kBegin:
        begun[record->id] = open();
        break;
      case RangeAction::kEnd:
        if (const auto range = begun.find(record->id); range != begun.end()) end_range(found[range->second], time);
        break;
      case RangeAction::kMark:
        if (record->meaning != raw::Meaning::kIteration) break;
        if (iteration != kNone) end_range(found[iteration], time);
        iteration = open();
        break;
      case RangeAction::kUnknown:
        break;
    }
  }
  std::erase_if(found, [](const GpuRange& range) { return range.name.empty(); });
  return found;
}

std::optional<TimeSpan> complete_iterations(const ProcessLog& process) {
  std::optional<TimeSpan> found;
  for (const FittedLog& file : process.files) {
    if (file.log.ops.empty()) continue;  // not a file of the framework
    std::map<std::uint64_t, std::int64_t> begun;
    for (const raw::Range& record : file.log.ranges) {
      if (record.action == raw::RangeAction::kBegin && record.meaning == raw::Meaning::kIteration)
        begun[record.id] = file.clock.common(record.time);
      const auto begin = begun.find(record.id);
      if (record.action != raw::RangeAction::kEnd || begin == begun.end()) continue;
      const std::int64_t end = file.clock.common(record.time);
      found = {found ? std::min(found->first, begin->second) : begin->second, found ? std::max(found->last, end) : end};
    }
  }
  return found;
}

}  // namespace tidepool
