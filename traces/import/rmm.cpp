// Logs of the RAPIDS Memory Manager (RMM_LOG_FILE, rmm.enable_logging, LoggingResourceAdaptor):
//   Thread,Time,Action,Pointer,Size,Stream
//   2342727,15:47:02.841961,allocate,0x10012400000,1048576,0
// The header may be missing. Actions are allocate, free (or deallocate) and "allocate failure". Times are times of day
// with six digits behind '.' or ':', or seconds since 1970. The rows of all threads are in the order in which they were
// logged. RMM logs an allocation after it was made and a free before it is done, so no two blocks overlap. An
// allocation of nothing has the null pointer and is left out.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/builder.hpp"
#include "traces/import/blocks.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/period.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/recorded_names.hpp"

namespace tidepool {
namespace {

constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream";
constexpr std::int64_t kSecond = 1'000'000'000;  // in ns
constexpr std::int64_t kDay = 24 * 3600 * kSecond;

enum class RmmAction : std::uint8_t { kAllocate, kFree, kFailure };

std::optional<RmmAction> action_named(std::string_view word) {
  if (word == "allocate") return RmmAction::kAllocate;
  if (word == "free" || word == "deallocate") return RmmAction::kFree;
  if (word == "allocate failure") return RmmAction::kFailure;
  return {};
}

using Fields = std::array<std::string_view, 6>;

/// The six fields of a line; none if there are not six.
std::optional<Fields> split_rmm(std::string_view line) {
  Fields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == fields.size())) return {};
    fields[i] = line.substr(0, comma);
    line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  }
  return fields;
}

/// The number that a text of 1 to `most` decimal digits stands for; none for any other text.
std::optional<std::int64_t> digits(std::string_view text, std::size_t most) {
  if (text.empty() || text.size() > most || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return parse_whole(text);
}

struct Time {
  std::int64_t nanoseconds = 0;  ///< since midnight or since 1970
  bool of_day = true;
};

/// "15:47:02.841961", "15:47:02:841961", "1634567890.123456".
std::optional<Time> parse_time(std::string_view text) {
  if (text.size() < 8) return {};
  const std::size_t point = text.size() - 7;
  if (text[point] != '.' && text[point] != ':') return {};
  const auto fraction = digits(text.substr(point + 1), 6);
  if (!fraction) return {};
  const std::string_view whole = text.substr(0, point);
  if (whole.find(':') == std::string_view::npos) {
    constexpr std::int64_t kMostSeconds = 9'000'000'000;  // in the year 2255
    const auto seconds = digits(whole, 10);
    if (!seconds || *seconds > kMostSeconds || text[point] != '.') return {};
    return Time{*seconds * kSecond + *fraction * 1000, false};
  }
  if (whole.size() != 8 || whole[2] != ':' || whole[5] != ':') return {};
  const auto hours = digits(whole.substr(0, 2), 2), minutes = digits(whole.substr(3, 2), 2),
             seconds = digits(whole.substr(6, 2), 2);
  if (!hours || !minutes || !seconds || *hours > 23 || *minutes > 59 || *seconds > 60) return {};
  return Time{((*hours * 60 + *minutes) * 60 + *seconds) * kSecond + *fraction * 1000, true};
}

struct Row {
  RmmAction action = RmmAction::kAllocate;
  Time time;
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::string_view stream;
};

Row parse_row(const Lines& lines) {
  const std::optional<Fields> fields = split_rmm(lines.text());
  if (!fields) lines.refuse("'{}'; expected {}", excerpt(lines.text()), kHeader);
  const auto& [thread, time, action, pointer, size, stream] = *fields;
  Row row;
  const std::optional<Time> at = parse_time(time);
  if (!at) lines.refuse("the time is '{}'; expected one as in 15:47:02.841961 or 1634567890.123456", excerpt(time));
  row.time = *at;
  const std::optional<RmmAction> what = action_named(action);
  if (!what) lines.refuse("unknown action '{}'; expected allocate, free or allocate failure", excerpt(action));
  row.action = *what;
  const std::optional<std::int64_t> address = pointer == "(nil)" ? std::int64_t{0} : parse_whole(pointer);
  if (!address || *address < 0)
    lines.refuse("the pointer is '{}'; expected one as in 0x7f8a40000000 or (nil)", excerpt(pointer));
  row.address = *address;
  const std::optional<std::int64_t> bytes = parse_whole(size);
  if (!bytes || *bytes < 0) lines.refuse("the size is '{}'; expected a whole number, at least 0", excerpt(size));
  row.size = *bytes;
  if (row.action == RmmAction::kAllocate && row.address == 0 && row.size != 0)
    lines.refuse("allocates {} bytes at the null pointer", row.size);
  row.stream = stream;
  return row;
}

class RmmImport {
 public:
  explicit RmmImport(const Input& input) : input_{input}, lines_{input.path(), input.bytes()} {}

  Trace run() {
    read();
    TraceBuilder builder{stream_names_.empty() ? std::vector<std::string>{"0"} : stream_names_};
    builder.losses() = losses_;
    Blocks blocks{builder, events_};
    find_iterations();
    std::size_t next_mark = 0;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (next_mark < marks_.size() && marks_[next_mark] == i)
        builder.mark(MarkKind::kIteration, std::to_string(next_mark++));
      blocks.step(events_[i]);
    }
    builder.meta()["source"] = "rmm";
    builder.meta()["logged"] = to_text(Nanos{logged_});
    if (failures_ != 0) builder.meta()["failed_allocations"] = std::to_string(failures_);
    return builder.finish();
  }

 private:
  void read() {
    bool any = false;
    while (lines_.next()) {
      if (lines_.text().empty() || lines_.text() == kHeader) continue;
      const std::optional<Row> row = read_row(any);
      if (row)
        add(*row);
      else
        ++losses_.dropped_records;
      any = true;
    }
    if (!any) throw InputError{fmt::format("{}: no row; expected rows of {}", input_.path(), kHeader)};
  }

  /// The row of this line; none if the line is no row because its end is missing, and a row came before it.
  std::optional<Row> read_row(bool any) const {
    try {
      return parse_row(lines_);
    } catch (const InputError&) {
      if (!any || !cut_off()) throw;
      return {};
    }
  }

  /// Whether this is the last line, and its end is missing: RMM buffers what it logs, and a process may die.
  bool cut_off() const {
    const std::string_view bytes = input_.bytes();
    return lines_.text().data() + lines_.text().size() == bytes.data() + bytes.size();
  }

  void add(const Row& row) {
    clock(row.time);
    if (row.action == RmmAction::kFailure) ++failures_;
    if (row.action == RmmAction::kFailure || row.address == 0) return;
    tidepool::add(sizes_, row.size, "sizes", lines_);
    LoggedBlock event;
    event.event = row.action == RmmAction::kFree ? BlockEvent::kFree : BlockEvent::kAlloc;
    event.block.size = Bytes{row.size};
    event.block.address = row.address;
    event.block.stream = stream(row.stream);
    events_.push_back(event);
  }

  /// Adds the time since the latest row before to the time that the log spans. A time of day that is more than half a
  /// day earlier is of the next day. Other rows before the latest one, of threads that logged late, add no time. The
  /// largest delay is noted as a loss.
  void clock(const Time& time) {
    if (latest_ && latest_->of_day != time.of_day)
      lines_.refuse("a time {}; the rows before have times {}", time.of_day ? "of day" : "since 1970",
                    time.of_day ? "since 1970" : "of day");
    std::int64_t step = latest_ ? time.nanoseconds - latest_->nanoseconds : 0;
    if (time.of_day && step < -kDay / 2) step += kDay;
    if (time.of_day && step > kDay / 2) step -= kDay;  // the thread logged late, on the day before
    losses_.clock_residual_ns = std::max(losses_.clock_residual_ns, -step);
    if (step < 0) return;
    tidepool::add(times_, step, "times", lines_);
    logged_ += step;
    latest_ = time;
  }

  StreamId stream(std::string_view name) {
    const auto [entry, added] = streams_.try_emplace(excerpt(name), StreamId{stream_names_.size()});
    if (added) {
      if (stream_names_.size() == kMostStreams) lines_.refuse("more than {} streams", kMostStreams);
      stream_names_.push_back(entry->first);
    }
    return entry->second;
  }

  /// Finds the loop. Two events are equal for this if both allocate or both free the same size.
  void find_iterations() {
    std::map<std::pair<std::int64_t, BlockEvent>, std::uint32_t> ids;
    std::vector<std::uint32_t> symbols;
    for (const LoggedBlock& event : events_) {
      const std::pair key{event.block.size.count(), event.event};
      symbols.push_back(ids.try_emplace(key, static_cast<std::uint32_t>(ids.size())).first->second);
    }
    const Period period = find_period(symbols);
    for (const PeriodicRun& run : period.runs)
      for (std::size_t at = run.first; at + period.length <= run.last; at += period.length) marks_.push_back(at);
  }

  const Input& input_;
  Lines lines_;
  Losses losses_;
  Total sizes_, times_;
  std::vector<LoggedBlock> events_;
  std::unordered_map<std::string, StreamId> streams_;
  std::vector<std::string> stream_names_;
  std::optional<Time> latest_;
  std::int64_t logged_ = 0;  // ns, see clock()
  std::int64_t failures_ = 0;
  std::vector<std::size_t> marks_;  // events with which iterations begin
};

/// A log without a header is known by its first row.
int sniff_rmm(std::string_view head) {
  const std::size_t end = head.find_first_of("\r\n");
  const std::string_view first = head.substr(0, end);
  if (first == kHeader) return 100;
  const std::optional<Fields> fields = split_rmm(first);
  return fields && parse_time((*fields)[1]) && action_named((*fields)[2]) ? 95 : 0;
}

const RegisterImporter kRmm{
    {"rmm", "logs of the RAPIDS Memory Manager", {".csv", ".txt", ".log"}, sniff_rmm, read_rmm}};

}  // namespace

Trace read_rmm(const Input& input) { return RmmImport{input}.run(); }

}  // namespace tidepool
