#include "tracer/lower/clock_fit.hpp"

#include <algorithm>

#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // ns: from 1970 to 2043; two times can be subtracted

bool in_range(std::int64_t time) { return -kMostTime <= time && time <= kMostTime; }

}  // namespace

ClockFit::ClockFit(const raw::Log& log) : log_{log} {
  if (log.header.clock == raw::Clock::kMonotonicRaw) return;
  const auto add = [&](std::int64_t time, std::int64_t common) {
    if (in_range(time) && in_range(common)) readings_.push_back({time, common});
  };
  for (const raw::ClockReading& reading : log.clocks) add(reading.time, reading.monotonic_raw);
  // The header is less exact: its time is read at the first use of CUPTI, milliseconds before its times of the other
  // two clocks.
  if (readings_.empty() && log.header.monotonic_raw != 0) add(log.header.time, log.header.monotonic_raw);
  std::sort(readings_.begin(), readings_.end(), [](const Reading& a, const Reading& b) { return a.time < b.time; });
  // Keep only readings that are later, on both clocks, than the one kept before them. Any other reading means that a
  // clock was set back: no ascending line goes through it and the one before.
  std::vector<Reading> ascending;
  for (const Reading& reading : readings_)
    if (ascending.empty() || (reading.time > ascending.back().time && reading.common > ascending.back().common))
      ascending.push_back(reading);
  readings_ = std::move(ascending);
}

std::int64_t ClockFit::between(const Reading& a, const Reading& b, std::int64_t time) {
  __extension__ using Wide = __int128;
  const Wide product = Wide{time - a.time} * (b.common - a.common);
  return a.common + static_cast<std::int64_t>(product / (b.time - a.time));
}

std::int64_t ClockFit::common(std::int64_t time) const {
  if (!in_range(time)) refuse("{}: time {}; expected -2^61 to 2^61", log_.path, time);
  if (readings_.empty()) return time;
  const auto behind = std::upper_bound(readings_.begin(), readings_.end(), time,
                                       [](std::int64_t value, const Reading& reading) { return value < reading.time; });
  // All three numbers are from -2^61 to 2^61, so the result is within 64 bits.
  const auto beside = [&](const Reading& reading) { return time - reading.time + reading.common; };
  const std::int64_t result = behind == readings_.begin() ? beside(readings_.front())
                              : behind == readings_.end() ? beside(readings_.back())
                                                          : between(*(behind - 1), *behind, time);
  if (!in_range(result))
    refuse("{}: time {} is {} on the common clock; expected -2^61 to 2^61", log_.path, time, result);
  return result;
}

std::int64_t ClockFit::residual() const {
  std::int64_t most = 0;
  for (std::size_t i = 1; i + 1 < readings_.size(); ++i) {
    const std::int64_t line = between(readings_[i - 1], readings_[i + 1], readings_[i].time);
    most = std::max(most, std::abs(line - readings_[i].common));
  }
  return most;
}

}  // namespace tidepool
