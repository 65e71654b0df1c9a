#include "simulator/studies/report/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "traces/names.hpp"
#include "traces/program_names.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kViewRows = 12, kViewMargin = 10, kLargest = 8;

double share(auto part, auto whole) {
  return whole.count() == 0 ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string moment_text(const History& history, Nanos time) {
  return history.counted ? fmt::format("event {}", time.count()) : to_text(time - history.begin);
}

std::string repeated(std::string_view sign, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += sign;
  return text;
}

/// For each column, the point with the largest sum among the changes in the column and the last point before it.
std::vector<MemoryPoint> columns_of(const History& history, std::size_t columns) {
  std::vector<MemoryPoint> largest(columns);
  const Nanos duration = std::max(Nanos{1}, history.end - history.begin);
  MemoryPoint now;
  for (std::size_t c = 0, i = 0; c < columns; ++c) {
    const Nanos end = history.begin + duration * static_cast<std::int64_t>(c + 1) / static_cast<std::int64_t>(columns);
    largest[c] = now;
    for (; i < history.memory.size() && (history.memory[i].time < end || c + 1 == columns); ++i) {
      now = history.memory[i];
      if (now.sum() > largest[c].sum()) largest[c] = now;
    }
  }
  return largest;
}

std::string memory_plot(const History& history, Bytes capacity, const ViewOptions& options) {
  const std::size_t columns = options.width - kViewMargin - 2;
  const std::vector<MemoryPoint> points = columns_of(history, columns);
  Bytes top{1};
  for (const MemoryPoint& point : points) top = std::max(top, point.sum());
  const bool limited = capacity <= top * 2;
  if (limited) top = std::max(top, capacity);
  const auto rows_of = [&](Bytes bytes) {
    return static_cast<std::size_t>(share(bytes, top) * static_cast<double>(kViewRows) + 0.5);
  };
  std::string out;
  for (std::size_t row = kViewRows + 1; row-- > 0;) {
    const Bytes here = top * static_cast<std::int64_t>(row) / static_cast<std::int64_t>(kViewRows);
    const bool limit = limited && row == rows_of(capacity);
    const std::string label = row % 4 == 0 ? to_text(here) : "";
    if (row == 0) {
      out += fmt::format("{:>{}}{}{}\n", label, kViewMargin, options.utf8 ? "└" : "+",
                         repeated(options.utf8 ? "─" : "-", columns));
      break;
    }
    out += fmt::format("{:>{}}{}", label, kViewMargin, options.utf8 ? (row % 4 == 0 ? "┤" : "│") : "|");
    std::string line;
    std::size_t blank = 0;
    for (const MemoryPoint& point : points) {
      // The kind whose part of the stacked bar covers this row.
      Bytes below;
      std::size_t kind = point.held.size();
      for (std::size_t k = 1; k <= point.held.size() && kind == point.held.size(); ++k) {
        below += point.held[k % point.held.size()];
        if (rows_of(below) >= row) kind = k % point.held.size();
      }
      if (kind == point.held.size() && !limit) {
        ++blank;
        continue;
      }
      line += std::string(std::exchange(blank, 0), ' ');
      if (kind < point.held.size())
        line += painted(options.colour && options.utf8 ? "█" : kKindLetters.substr(kind, 1), kind, options.colour);
      else
        line += options.utf8 ? "─" : "-";
    }
    out += line + '\n';
  }
  const std::string end = moment_text(history, history.end);
  out += fmt::format("{:>{}} 0{:>{}}\n", "", kViewMargin, end, columns - 1);
  if (limited)
    out += fmt::format("{:>{}} {} capacity {}\n", "", kViewMargin, options.utf8 ? "─" : "-", to_text(capacity));
  return out;
}

std::string bar(double part, std::size_t width, const ViewOptions& options) {
  return repeated(options.utf8 ? "█" : "#", static_cast<std::size_t>(part * static_cast<double>(width) + 0.5));
}

/// The bytes at the peak by kind, and the largest buffers at that time.
std::string peak_text(const Trace& trace, const History& history, const ViewOptions& options) {
  const auto peak = std::max_element(history.memory.begin(), history.memory.end(),
                                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.sum() < b.sum(); });
  if (peak == history.memory.end()) return "nothing is ever in memory\n";
  std::string out = fmt::format("\npeak {} at {}\n", to_text(peak->sum()), moment_text(history, peak->time));
  for (std::size_t k = 1; k <= peak->held.size(); ++k) {
    const std::size_t kind = k % peak->held.size();
    if (peak->held[kind] == Bytes{}) continue;
    const double part = share(peak->held[kind], peak->sum());
    out +=
        fmt::format("  {} {:<16}{:>10} {:>5.1f} %  {}\n", painted(kKindLetters.substr(kind, 1), kind, options.colour),
                    words<BufferKind>()[kind], to_text(peak->held[kind]), part * 100,
                    painted(bar(part, options.width > 60 ? options.width - 44 : 16, options), kind, options.colour));
  }
  std::vector<const Stay*> there;
  for (const Stay& stay : history.stays)
    if (stay.begin <= peak->time && peak->time < std::max(stay.end, stay.begin + Nanos{1})) there.push_back(&stay);
  const auto size = [&](const Stay* stay) { return trace.buffer(stay->buffer).size; };
  const std::size_t shown = std::min(kLargest, there.size());
  std::partial_sort(
      there.begin(), there.begin() + static_cast<std::ptrdiff_t>(shown), there.end(),
      [&](const Stay* a, const Stay* b) { return size(a) != size(b) ? size(a) > size(b) : a->buffer < b->buffer; });
  out += fmt::format("\nlargest buffers then, of {}\n", there.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Buffer& buffer = trace.buffer(there[i]->buffer);
    const std::string line =
        fmt::format("{:>10}  {:<16}{}", to_text(buffer.size), word(buffer.kind), buffer_text(trace, there[i]->buffer));
    out += "  " + line.substr(0, options.width - 2) + '\n';
  }
  return out;
}

/// One activity of a lane.
struct Busy {
  std::size_t lane;
  Nanos begin, end;
};

std::string lanes_text(const Trace& trace, const History& history, const ViewOptions& options) {
  std::vector<std::string> names;
  for (const std::string& stream : trace.data().streams)
    names.push_back(trace.data().streams.size() == 1 ? "compute" : stream.empty() ? "stream" : stream);
  const std::size_t to_host = names.size();
  names.insert(names.end(), {"to host", "from host"});
  const bool storage =
      std::any_of(history.copies.begin(), history.copies.end(), [](const CopySpan& copy) { return copy.storage; });
  if (storage) names.insert(names.end(), {"to storage", "from storage"});
  const std::size_t label = storage ? names.back().size() : kViewMargin - 1;
  std::vector<Busy> all;
  for (const RunSpan& run : history.runs) all.push_back({run.stream.index(), run.begin, run.end});
  for (const CopySpan& copy : history.copies)
    all.push_back(
        {to_host + (copy.direction == Direction::kOut ? 0 : 1) + (copy.storage ? 2 : 0), copy.begin, copy.end});

  const std::size_t columns = options.width - label - 10;
  const Nanos duration = std::max(Nanos{1}, history.end - history.begin);
  const double cell = static_cast<double>(duration.count()) / static_cast<double>(columns);
  std::vector<std::vector<double>> busy(names.size(), std::vector<double>(columns));
  for (const Busy& span : all) {
    double from = static_cast<double>((span.begin - history.begin).count()) / cell;
    const double to = static_cast<double>((span.end - history.begin).count()) / cell;
    for (auto c = static_cast<std::size_t>(from); c < columns && from < to; ++c) {
      const double end = std::min(to, static_cast<double>(c + 1));
      busy[span.lane][c] += end - from;
      from = end;
    }
  }
  static constexpr std::array<std::string_view, 5> kShades{" ", "░", "▒", "▓", "█"}, kSigns{" ", ".", "-", "=", "#"};
  std::string out = "\nlanes, and how much of the time they are busy\n";
  for (std::size_t lane = 0; lane < names.size(); ++lane) {
    double sum = 0;
    std::string line;
    for (const double part : busy[lane]) {
      sum += part;
      const auto shade = part <= 0 ? 0 : std::min<std::size_t>(4, 1 + static_cast<std::size_t>(part * 3.999));
      line += (options.utf8 ? kShades : kSigns)[shade];
    }
    out += fmt::format("{:>{}} {} {:>5.1f} %\n", names[lane].substr(0, label), label, line,
                       sum / static_cast<double>(columns) * 100);
  }
  return out;
}

}  // namespace

std::string view_text(const Trace& trace, const History& history, Bytes capacity, const ViewOptions& options) {
  return memory_plot(history, capacity, options) + peak_text(trace, history, options) +
         lanes_text(trace, history, options);
}

}  // namespace tidepool
