// Memory logs of SINGA, recorded by the authors of SmartPool and AutoSwap (Zhang et al., arXiv 1903.06631). One event
// per line; the form of each line is recognized by its words, since longer forms contain the shorter ones:
//   Malloc ptr size [time] | Free ptr [time]                       memInfo
//   Malloc ptr size time | Read ptr size | Mutable ptr time | ...  blockInfo
//   event block size time                                          vec_block
//   index event block size time                                    vec_run
// with the events Malloc, Free, Read, Mutable (the program gets the block's bytes to change them) and Layer (a layer
// names the block). A remark in parentheses may end a line. Times are ns, or ms since 1970.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "traces/base/lines.hpp"
#include "traces/base/text.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/period.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

enum class EventKind : std::uint8_t { kMalloc, kFree, kRead, kMutable, kLayer };
constexpr std::array<std::string_view, 5> kEventNames{"Malloc", "Free", "Read", "Mutable", "Layer"};
constexpr std::string_view kKnownActions = "Malloc, Free, Read, Mutable or Layer";

std::optional<EventKind> event_kind(std::string_view word) {
  for (std::size_t i = 0; i < kEventNames.size(); ++i)
    if (kEventNames[i] == word) return static_cast<EventKind>(i);
  return {};
}

/// A number from here on is a time in ms since 1970 (1973 or later); no block is that large.
constexpr std::int64_t kLeastSince1970 = 100'000'000'000;

bool uses(EventKind kind) { return kind != EventKind::kMalloc && kind != EventKind::kFree; }

struct Event {
  EventKind kind = EventKind::kMalloc;
  std::uint32_t line = 0;
  std::uint32_t block = 0;  ///< index into SingaLog::blocks
  std::int64_t size = -1;   ///< -1 = the line does not say
  std::int64_t time = -1;   ///< -1 = the line does not say
};

struct SingaLog {
  std::vector<std::string_view> blocks;  ///< as the log writes them
  std::vector<Event> events;
};

/// Up to six words of a line, without a remark at its end. No valid line has more.
struct Words {
  std::array<std::string_view, 6> word;
  std::size_t count = 0;
};

Words split(std::string_view line) {
  line = line.substr(0, line.find('('));
  Words found;
  while (found.count < found.word.size()) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    found.word[found.count++] = line.substr(begin, end - begin);
    line.remove_prefix(end);
  }
  return found;
}

SingaLog parse_singa_log(const Input& input) {
  constexpr std::int64_t kMostTime = std::int64_t{1} << 61;
  SingaLog log;
  std::unordered_map<std::string_view, std::uint32_t> ids;
  Total sizes;
  Lines lines{input.path(), input.bytes()};
  while (lines.next()) {
    const Words words = split(lines.text());
    if (words.count == 0) continue;
    const std::size_t skip = event_kind(words.word[0]) || !parse_whole(words.word[0]) ? 0 : 1;
    const std::optional<EventKind> kind = event_kind(words.word[skip]);
    if (!kind) lines.refuse("unknown event '{}'; expected {}", excerpt(words.word[skip]), kKnownActions);
    const std::size_t numbers = words.count - skip - 2;  // after the block
    if (words.count < skip + 2 || numbers > 2 || (*kind == EventKind::kMalloc && numbers == 0))
      lines.refuse("'{}'; expected {}", excerpt(lines.text()),
                   *kind == EventKind::kMalloc ? "Malloc, a block, a size and at most a time"
                                               : "an event, a block, and at most a size and a time");
    const auto number = [&](std::size_t i, std::string_view what) {
      const std::optional<std::int64_t> value = parse_whole(words.word[skip + 2 + i]);
      if (!value || *value < 0 || *value > kMostTime)
        lines.refuse("the {} is '{}'; expected a whole number from 0 to 2^61", what, excerpt(words.word[skip + 2 + i]));
      return *value;
    };
    const auto is_size = [&] { return parse_whole(words.word[skip + 2]).value_or(0) < kLeastSince1970; };
    Event event;
    event.kind = *kind;
    event.line = lines.number();
    const auto [entry, added] = ids.try_emplace(words.word[skip + 1], static_cast<std::uint32_t>(log.blocks.size()));
    if (added && !is_utf8(std::string{words.word[skip + 1]}))
      lines.refuse("the block is '{}', which is not UTF-8; expected a file in UTF-8", excerpt(words.word[skip + 1]));
    if (added) log.blocks.push_back(words.word[skip + 1]);
    event.block = entry->second;
    // A single number is a size for a Malloc and a time for a Free; for a use it is a size if it could be one.
    const bool sized = numbers == 2 || (numbers == 1 && (*kind == EventKind::kMalloc || (uses(*kind) && is_size())));
    if (sized) event.size = number(0, "size");
    if (numbers == 2 || (numbers == 1 && !sized)) event.time = number(numbers - 1, "time");
    add(sizes, std::max<std::int64_t>(event.size, 0), "sizes", lines);
    log.events.push_back(event);
  }
  if (log.events.empty())
    throw InputError{input.path() + ": no event; expected lines with " + std::string{kKnownActions}};
  return log;
}

class SingaImport {
 public:
  SingaImport(const SingaLog& log, const Lines& lines) : log_{log}, lines_{lines}, blocks_(log.blocks.size()) {
    for (const Event& event : log.events) timed_ = timed_ || uses(event.kind);
    find_addresses();
  }

  Trace run() {
    find_iterations();
    read_clock();
    for (std::size_t i = 0; i < log_.events.size(); ++i) {
      if (next_mark_ < marks_.size() && marks_[next_mark_] == i)
        builder_.mark(MarkKind::kIteration, std::to_string(next_mark_++));
      step(i);
    }
    builder_.meta()["source"] = "singa";
    if (timed_) builder_.meta()["time"] = "measured";
    return builder_.finish();
  }

 private:
  struct Block {
    std::optional<BufferId> buffer;  ///< while it is allocated
    std::int64_t size = 0;
    std::uint32_t since = 0;  ///< line of the last Malloc (or first use) or Free; 0 = not seen yet
  };

  template <class... Args>
  [[noreturn]] void refuse(const Event& at, fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(lines_.position(at.line));
  }

  /// The blocks are named by device addresses if blocks that are allocated at the same time never overlap; otherwise
  /// they are objects on the host.
  void find_addresses() {
    constexpr std::int64_t kMost = std::int64_t{1} << 61;
    for (const std::string_view name : log_.blocks) addresses_.push_back(parse_whole(name).value_or(-1));
    std::map<std::int64_t, std::int64_t> live;  // begin, end
    for (const Event& event : log_.events) {
      const std::int64_t begin = addresses_[event.block];
      const bool known = live.contains(begin);
      if (event.kind == EventKind::kFree) {
        live.erase(begin);
      } else if (event.size >= 0 && !known) {
        const auto next = live.upper_bound(begin);
        const bool address = begin >= 0 && begin <= kMost;
        const bool apart = address && (next == live.end() || next->first >= begin + event.size) &&
                           (next == live.begin() || std::prev(next)->second <= begin);
        if (!apart) return addresses_.assign(log_.blocks.size(), -1);
        live[begin] = begin + event.size;
      }
    }
  }

  /// Two events are equal for the search if they do the same to blocks of one size.
  void find_iterations() {
    std::vector<std::int64_t> sizes(log_.blocks.size(), -1);
    std::unordered_map<std::int64_t, std::uint32_t> size_ids;
    std::vector<std::uint32_t> symbols;
    for (const Event& event : log_.events) {
      if (event.size >= 0) sizes[event.block] = event.size;
      const auto [entry, added] = size_ids.try_emplace(sizes[event.block], static_cast<std::uint32_t>(size_ids.size()));
      symbols.push_back(entry->second * static_cast<std::uint32_t>(kEventNames.size()) +
                        static_cast<std::uint32_t>(event.kind));
    }
    const Period period = find_period(symbols);
    for (const PeriodicRun& run : period.runs)
      for (std::size_t at = run.first; at + period.length <= run.last; at += period.length) marks_.push_back(at);
  }

  /// The time from the first event to each event. Steps backwards count as no time; the largest is noted as a loss.
  void read_clock() {
    constexpr std::int64_t kMostMilliseconds = 100'000'000'000'000;  // since 1970, in the year 5138
    std::int64_t now = 0, last = -1, unit = 0;
    Total total;
    for (const Event& event : log_.events) {
      if (timed_ && event.time >= 0) {
        if (last < 0) unit = event.time >= kLeastSince1970 && event.time < kMostMilliseconds ? 1'000'000 : 1;
        std::int64_t step = last < 0 ? 0 : event.time - last;
        if (__builtin_mul_overflow(step, unit, &step))
          refuse(event, "the time is {}, far from the one before", event.time);
        last = event.time;
        if (step < 0) builder_.losses().clock_residual_ns = std::max(builder_.losses().clock_residual_ns, -step);
        try {
          total.add(std::max<std::int64_t>(step, 0), "durations");
        } catch (const InputError& error) {
          throw error.at(lines_.position(event.line));
        }
        now += std::max<std::int64_t>(step, 0);
      }
      clock_.push_back(now);
      if (uses(event.kind)) ops_.push_back(clock_.size() - 1);
    }
  }

  void step(std::size_t i) {
    const Event& event = log_.events[i];
    Block& block = blocks_[event.block];
    if (event.kind == EventKind::kMalloc) {
      if (block.buffer) refuse(event, "Malloc of {}, which is allocated since line {}", show(event), block.since);
      block = {builder_.alloc(spec(event)), event.size, event.line};
      return;
    }
    if (!block.buffer) {
      const std::string_view name = kEventNames[static_cast<std::size_t>(event.kind)];
      if (block.since != 0) refuse(event, "{} of {}, which was freed in line {}", name, show(event), block.since);
      if (event.size < 0) refuse(event, "{} of {}, which was not allocated before", name, show(event));
      block = {builder_.existing(spec(event)), event.size, event.line};
    }
    if (event.kind == EventKind::kFree) {
      builder_.free(*block.buffer);
      block = {std::nullopt, 0, event.line};
    } else {
      use(i, *block.buffer);
    }
  }

  /// The log has no durations. An op lasts until the next one begins, the last one until the last event, and the first
  /// one begins at the first event; so the durations add up to the log's time span.
  void use(std::size_t i, BufferId buffer) {
    const EventKind kind = log_.events[i].kind;
    Op op;
    op.name = builder_.text(kEventNames[static_cast<std::size_t>(kind)]);
    const std::size_t number = next_op_++;
    op.start = Nanos{number == 0 ? 0 : clock_[i]};
    op.duration = Nanos{number + 1 < ops_.size() ? clock_[ops_[number + 1]] : clock_.back()} - op.start;
    const Access access = kind == EventKind::kMutable ? Access::kReadWrite : Access::kRead;
    const Evidence evidence = kind == EventKind::kLayer ? Evidence::kInferred : Evidence::kInstrumented;
    builder_.run(op, {{buffer, access, evidence, VersionId{}}});
  }

  Buffer spec(const Event& event) {
    Buffer buffer;
    buffer.size = Bytes{event.size};
    const std::string_view name = log_.blocks[event.block];
    buffer.address = addresses_[event.block];
    if (buffer.address < 0) buffer.name = builder_.text(name);
    return buffer;
  }

  std::string show(const Event& event) const { return excerpt(log_.blocks[event.block]); }

  const SingaLog& log_;
  const Lines& lines_;
  TraceBuilder builder_;
  bool timed_ = false;                   // the log has uses
  std::vector<std::int64_t> addresses_;  // by block; -1 for all if there are no addresses
  std::vector<Block> blocks_;
  std::vector<std::size_t> marks_;  // events with which iterations begin
  std::size_t next_mark_ = 0;
  std::vector<std::int64_t> clock_;  // by event
  std::vector<std::size_t> ops_;     // indices of the events that are ops
  std::size_t next_op_ = 0;
};

int sniff_singa(std::string_view head) {
  const Words words = split(head.substr(0, head.find_first_of("\r\n")));
  const bool indexed = words.count > 2 && parse_whole(words.word[0]) && event_kind(words.word[1]);
  return words.count > 1 && (indexed || event_kind(words.word[0])) ? 90 : 0;
}

const RegisterImporter kSinga{
    {"singa", "SINGA memory logs (memInfo, vec_block, vec_run)", {".text", ".txt", ".csv"}, sniff_singa, read_singa}};

}  // namespace

Trace read_singa(const Input& input) {
  const SingaLog log = parse_singa_log(input);
  const Lines lines{input.path(), input.bytes()};
  return SingaImport{log, lines}.run();
}

}  // namespace tidepool
