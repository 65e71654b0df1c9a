#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "simulator/run_spec.hpp"
#include "simulator/studies/text/terminal.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr char kSeveral = '*', kBest = '.';
constexpr double kHighest = 10;     // overheads above this would flatten all others
constexpr std::size_t kMargin = 9;  // of "   1000 %|", up to the bar

/// The height of an overhead on the axis: 0 for 0 %, 1 for 9 %, 2 for 99 %.
double height_of(double overhead) { return std::log10(1 + 100 * std::max(0.0, overhead)); }

char letter(std::size_t policy) { return policy < kLetters.size() ? kLetters[policy] : '#'; }

/// The characters of the plot, each with its policy.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows)
      : columns_{columns}, cells_(columns * rows, ' '), policies_(columns * rows) {}

  void dot(std::size_t column, std::size_t row) { cells_[row * columns_ + column] = kBest; }
  void mark(std::size_t column, std::size_t row, std::size_t policy) {
    char& cell = cells_[row * columns_ + column];
    several_ |= cell != ' ' && cell != kBest;
    cell = cell == ' ' || cell == kBest ? letter(policy) : kSeveral;
    policies_[row * columns_ + column] = policy;
  }
  bool several() const { return several_; }

  std::string line(std::size_t row, bool colour) const {
    std::string text;
    for (std::size_t i = row * columns_; i < (row + 1) * columns_; ++i)
      text += colour && cells_[i] != ' ' && cells_[i] != kBest && cells_[i] != kSeveral
                  ? fmt::format("\x1b[{}m{}\x1b[0m", 31 + policies_[i] % 6, cells_[i])
                  : std::string(1, cells_[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  std::size_t columns_;
  std::string cells_;
  std::vector<std::size_t> policies_;
  bool several_ = false;
};

struct Scale {
  Bytes first, last;  // capacities at both ends
  double top = 0;     // height_of() at the upper end
  std::size_t columns = 0, rows = 0;

  std::size_t column(Bytes capacity) const {
    if (first == last) return columns / 2;
    const double share = static_cast<double>((capacity - first).count()) / static_cast<double>((last - first).count());
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(columns - 1)));
  }
  std::size_t row(double height) const {
    return rows - 1 - static_cast<std::size_t>(std::lround(height / top * static_cast<double>(rows - 1)));
  }
};

bool has_overhead(const Cell& cell) { return cell.tried && cell.outcome == Outcome::kOk && cell.overhead; }
bool shown(const Cell& cell) { return has_overhead(cell) && *cell.overhead <= kHighest; }

/// Joins the best points of adjacent capacities by dots.
void draw_best(Canvas& canvas, const Scale& scale, const std::vector<Bytes>& capacities,
               const std::vector<Line>& lines) {
  std::optional<std::pair<std::size_t, double>> before;
  for (std::size_t i = 0; i < capacities.size() && capacities[i] != kNoLimit; ++i) {
    Cell best;
    for (const Line& line : lines)
      if (line.cells[i].better_than(best)) best = line.cells[i];
    if (!shown(best)) continue;
    const std::size_t column = scale.column(capacities[i]);
    const double height = height_of(*best.overhead);
    const auto [from, from_height] = before.value_or(std::pair{column, height});
    for (std::size_t c = from; c <= column; ++c) {
      const double share = column == from ? 1 : static_cast<double>(c - from) / static_cast<double>(column - from);
      canvas.dot(c, scale.row(from_height + (height - from_height) * share));
    }
    before = {column, height};
  }
}

/// Labels of the vertical axis by row: round percentages, none closer than two rows to the one below.
std::vector<std::string> row_labels(const Scale& scale) {
  std::vector<std::string> labels(scale.rows);
  std::size_t above_which = scale.rows + 1;
  for (const int percent : {0, 1, 3, 10, 30, 100, 300, 1'000}) {
    const double height = height_of(percent / 100.0);
    if (height > scale.top) break;
    const std::size_t row = scale.row(height);
    if (row + 2 > above_which) continue;
    labels[row] = fmt::format("{} %", percent);
    above_which = row;
  }
  return labels;
}

/// The horizontal axis: ticks at up to five places, and below them sizes in one unit.
std::string memory_axis(const Scale& scale) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double divisor = 1;
  while (static_cast<double>(scale.last.count()) / divisor >= 1024 && unit + 1 < kUnits.size()) ++unit, divisor *= 1024;
  std::string ticks(scale.columns, '-'), labels(scale.columns + kMargin + 12, ' ');
  const std::int64_t places = scale.first == scale.last ? 1 : 5;
  for (std::int64_t i = 0; i < places; ++i) {
    const Bytes at = places == 1 ? scale.first : scale.first + (scale.last - scale.first) * i / (places - 1);
    const std::size_t column = scale.column(at);
    ticks[column] = '+';
    const double size = static_cast<double>(at.count()) / divisor;
    const std::string label = with_digits(size, 3);
    labels.replace(kMargin + 1 + column - label.size() / 2, label.size(), label);
  }
  labels.erase(labels.find_last_not_of(' ') + 1);
  const std::string name = fmt::format("memory, {}", kUnits[unit]);
  return fmt::format("{:>{}}+{}\n{}\n{:>{}}{}\n", "", kMargin, ticks, labels, "",
                     kMargin + 1 + (scale.columns - name.size()) / 2, name);
}

std::string legend(const std::vector<Line>& lines, bool several, const PlotOptions& options) {
  std::string out;
  std::size_t used = 0;
  const auto add = [&](const std::string& entry, std::size_t length) {
    if (used > 0 && used + 2 + length > options.width) out += '\n', used = 0;
    out += (used > 0 ? "  " : "") + entry;
    used += (used > 0 ? 2 : 0) + length;
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string mark =
        options.colour ? fmt::format("\x1b[{}m{}\x1b[0m", 31 + i % 6, letter(i)) : std::string(1, letter(i));
    add(mark + " " + lines[i].policy, lines[i].policy.size() + 2);
  }
  if (several) add(fmt::format("{} several", kSeveral), 9);
  add(fmt::format("{} best of all", kBest), 13);
  return out + '\n';
}

/// Axes for all points that can be shown; none if there are no such points.
std::optional<Scale> fit_scale(const Frontier& frontier, const std::vector<Line>& lines, const PlotOptions& options) {
  std::optional<Scale> scale;
  for (std::size_t i = 0; i < frontier.capacities.size() && frontier.capacities[i] != kNoLimit; ++i)
    for (const Line& line : lines) {
      if (!shown(line.cells[i])) continue;
      if (!scale) scale = Scale{.first = frontier.capacities[i], .last = {}, .top = height_of(0.01)};
      scale->last = frontier.capacities[i];
      scale->top = std::max(scale->top, height_of(*line.cells[i].overhead));
    }
  if (!scale) return {};
  scale->columns = std::max<std::size_t>(options.width, 40) - kMargin - 4;
  scale->rows = std::max<std::size_t>(options.height, 4);
  return scale;
}

}  // namespace

std::string plot(const Frontier& frontier, const PlotOptions& options) {
  const std::vector<Line> lines = best_pools(frontier);
  const std::optional<Scale> scale = fit_scale(frontier, lines, options);
  if (!scale) return "";
  Canvas canvas{scale->columns, scale->rows};
  draw_best(canvas, *scale, frontier.capacities, lines);
  bool left_out = false;
  for (std::size_t i = 0; i < frontier.capacities.size() && frontier.capacities[i] != kNoLimit; ++i)
    for (std::size_t policy = 0; policy < lines.size(); ++policy) {
      const Cell& cell = lines[policy].cells[i];
      if (shown(cell))
        canvas.mark(scale->column(frontier.capacities[i]), scale->row(height_of(*cell.overhead)), policy);
      else
        left_out |= has_overhead(cell);
    }

  std::string out =
      fmt::format("{} on {}: overhead against memory, best pool of each policy\n", frontier.trace, frontier.machine);
  const std::vector<std::string> labels = row_labels(*scale);
  for (std::size_t row = 0; row < scale->rows; ++row)
    out += fmt::format("{:>{}}|{}\n", labels[row], kMargin, canvas.line(row, options.colour));
  out += memory_axis(*scale) + legend(lines, canvas.several(), options);
  if (left_out) out += fmt::format("not shown: overheads above {:.0f} %\n", kHighest * 100);
  return out;
}

}  // namespace tidepool
