#include "traces/step/event_names.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "traces/base/error.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {

TraceWithHistory load_with_history(const std::string& path) {
  if (std::error_code unknown; std::filesystem::is_directory(path, unknown)) return {load_trace(path)};
  const Input input = read_trace_input(path, "auto");
  if (find_importer(input, "auto").name != "torch-snapshot") return {load_trace(input)};
  try {
    SnapshotHistory history;
    Trace trace = to_trace(parse_torch_snapshot(input.bytes()), {}, &history);
    return {std::move(trace), std::move(history)};
  } catch (const InputError& error) {
    throw error.at(path);
  }
}

EventNames::EventNames(const Trace& trace, const SnapshotHistory* history)
    : history_{history}, count_{history != nullptr ? history->events : trace.events().size()} {}

std::size_t EventNames::number(std::size_t record) const {
  return 1 + (history_ != nullptr ? history_->of_record[record] : record);
}

std::string EventNames::after(std::size_t records) const {
  if (count_ == 0) return "when the snapshot was taken";
  if (records == 0) return "before the first event";
  const std::size_t event = number(records - 1);
  std::string text = fmt::format("at event {} of {}", event, count_);
  if (history_ == nullptr || event == 1) return text;
  const std::int64_t first = history_->time_us.front(), at = history_->time_us[event - 1];
  if (first >= 0 && at >= first) text += fmt::format(", {} after the first", to_text(Nanos{(at - first) * 1000}));
  return text;
}

}  // namespace tidepool
