#include "validator/execution/execution_report.hpp"

#include <fmt/format.h>

#include <limits>

namespace tidepool {

std::string identify(const Trace& trace, const Corruption& corruption, const Expected& expected, Bytes unit) {
  if (corruption.found == kCleared) return "cleared memory";
  if (corruption.found == 0) return "memory that was never written";
  const auto word = static_cast<std::size_t>(corruption.offset / unit);
  for (std::size_t i = 0; i < expected.content.size(); ++i)
    if (trace.root(VersionId{i}) == VersionId{i} && word_of(expected.content[i], word) == corruption.found)
      return fmt::format("the content of version {} (buffer {})", i, trace.version(VersionId{i}).buffer.value());
  return "no content of the program";
}

std::string describe(const Plan& plan, const Corruption& corruption) {
  const std::string reader = corruption.op.valid() ? to_text(plan.actions[corruption.action]) + ": reads"
                                                   : std::string{"at the end of the step:"};
  return fmt::format("{} version {} (buffer {}): byte {} is wrong; expected {:016x}, found {:016x}, which is {}",
                     reader, corruption.version.value(), corruption.buffer.value(), corruption.offset.count(),
                     corruption.expected, corruption.found, corruption.found_is);
}

std::string describe_task(const Trace& trace, const Plan& plan, const LaneTable& lanes, std::uint32_t lane,
                          std::size_t action) {
  return fmt::format("{} ({})", lanes.name(trace, lane),
                     action < plan.actions.size() ? to_text(plan.actions[action]) : "checking the outputs");
}

std::string describe_stuck(const std::string& waiting, const std::string& awaited, Nanos patience) {
  return fmt::format("{} waits for {}, and nothing has ended for {}", waiting, awaited, to_text(patience));
}

void add_capped(Bytes& sum, Bytes more) {
  std::int64_t result = 0;
  sum = Bytes{__builtin_add_overflow(sum.count(), more.count(), &result) ? std::numeric_limits<std::int64_t>::max()
                                                                         : result};
}

std::string_view to_text(ExecutionOutcome outcome) {
  switch (outcome) {
    case ExecutionOutcome::kOk:
      return "ok";
    case ExecutionOutcome::kCorrupt:
      return "corrupt";
    case ExecutionOutcome::kStuck:
      return "stuck";
    case ExecutionOutcome::kOutOfMemory:
      return "out_of_memory";
    case ExecutionOutcome::kDeviceError:
      return "device_error";
  }
  return "";
}

}  // namespace tidepool
