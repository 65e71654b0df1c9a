#include "simulator/studies/report/cycle_history.hpp"

#include <algorithm>

namespace tidepool {

History last_iterations(History history, int iterations) {
  const auto wanted = static_cast<std::size_t>(iterations);
  if (history.iterations.size() < wanted) return history;
  const Nanos begin = history.iterations[history.iterations.size() - wanted];
  history.iterations.erase(history.iterations.begin(), history.iterations.end() - (iterations - 1));
  const auto since = [&](Nanos& time) { time = std::max(time - begin, Nanos{}); };
  std::erase_if(history.runs, [&](const RunSpan& run) { return run.begin < begin; });
  std::erase_if(history.copies, [&](const CopySpan& copy) { return copy.end <= begin; });
  std::erase_if(history.stays, [&](const Stay& stay) { return stay.end <= begin && stay.leaving != Leaving::kStays; });
  std::erase_if(history.segments, [&](const ReservedSegment& segment) { return segment.end <= begin; });
  // The last change at or before `begin` tells the state at `begin`.
  auto first = std::upper_bound(history.memory.begin(), history.memory.end(), begin,
                                [](Nanos time, const MemoryPoint& point) { return time < point.time; });
  if (first != history.memory.begin()) --first;
  history.memory.erase(history.memory.begin(), first);
  for (Nanos& time : history.iterations) since(time);
  for (RunSpan& run : history.runs) since(run.begin), since(run.end);
  for (CopySpan& copy : history.copies) since(copy.issued), since(copy.begin), since(copy.end);
  for (Stay& stay : history.stays) since(stay.begin), since(stay.end);
  for (ReservedSegment& segment : history.segments) since(segment.begin), since(segment.end);
  for (MemoryPoint& point : history.memory) since(point.time);
  since(history.end);
  history.begin = {};
  return history;
}

}  // namespace tidepool
