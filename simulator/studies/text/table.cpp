#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "simulator/studies/text/terminal.hpp"

namespace tidepool {
namespace {

struct Word {
  Outcome outcome;
  const char* text;
  const char* meaning;
};
constexpr Word kWords[] = {{Outcome::kOutOfMemory, "OOM", "out of memory"},
                           {Outcome::kInfeasible, "inf", "cannot be done"},
                           {Outcome::kTimeLimit, "slow", "over the time limit"},
                           {Outcome::kError, "ERROR", "failed"}};

std::string percent(double overhead) {
  const double value = overhead * 100;
  return value >= 999.95 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

std::string cell_text(const Cell& cell, std::set<Outcome>& seen) {
  if (!cell.tried) return "-";
  if (cell.outcome == Outcome::kOk) return cell.overhead ? percent(*cell.overhead) + to_text(cell.between, 1) : "ok";
  seen.insert(cell.outcome);
  for (const Word& word : kWords)
    if (word.outcome == cell.outcome) return word.text;
  return "?";
}

/// The width of a column: two characters between columns, or one if all columns fit only then.
std::size_t cell_width(const Frontier& frontier, std::size_t room) {
  std::size_t widest = 1;
  std::set<Outcome> seen;
  for (const Bytes capacity : frontier.capacities)
    widest = std::max(widest, fraction_text(capacity, frontier.ideal_peak).size());
  for (const std::vector<Line>* lines : {&frontier.lines, &frontier.bounds})
    for (const Line& line : *lines)
      for (const Cell& cell : line.cells) widest = std::max(widest, cell_text(cell, seen).size());
  const std::size_t columns = frontier.capacities.size();
  return columns * (widest + 2) > room && columns * (widest + 1) <= room ? widest + 1 : widest + 2;
}

std::string bound_label(const Line& line) { return "bound for " + line.policy; }

std::string pool_text(const Line& line) { return line.pool + (line.addresses ? "" : "*"); }

}  // namespace

std::string table(const Frontier& frontier, std::size_t width) {
  std::size_t policy_width = 6, pool_width = 4;
  for (const Line& line : frontier.lines) {
    policy_width = std::max(policy_width, line.policy.size());
    pool_width = std::max(pool_width, pool_text(line).size());
  }
  std::size_t label = policy_width + pool_width + 2;
  for (const Line& line : frontier.bounds) label = std::max(label, bound_label(line).size());
  pool_width = label - policy_width - 2;
  const std::size_t room = width > label ? width - label : 0;
  const std::size_t cell = cell_width(frontier, room);
  const std::size_t fit = std::max<std::size_t>(1, room / cell);

  std::string out =
      fmt::format("{} on {}: peak {}, {} without limit\noverhead in % by capacity (x: times the peak)\n",
                  frontier.trace, frontier.machine, to_text(frontier.ideal_peak), to_text(frontier.baseline));
  std::set<Outcome> seen;
  for (std::size_t first = 0; first < frontier.capacities.size(); first += fit) {
    const std::size_t last = std::min(first + fit, frontier.capacities.size());
    out += fmt::format("{:<{}}  {:<{}}", "policy", policy_width, "pool", pool_width);
    for (std::size_t i = first; i < last; ++i)
      out += fmt::format("{:>{}}", fraction_text(frontier.capacities[i], frontier.ideal_peak), cell);
    out += '\n';
    const std::string* above = nullptr;
    for (const Line& line : frontier.lines) {
      const bool again = above && *above == line.policy;
      out += fmt::format("{:<{}}  {:<{}}", again ? "" : line.policy, policy_width, pool_text(line), pool_width);
      for (std::size_t i = first; i < last; ++i) out += fmt::format("{:>{}}", cell_text(line.cells[i], seen), cell);
      out += '\n';
      above = &line.policy;
    }
    for (const Line& line : frontier.bounds) {
      out += fmt::format("{:<{}}", bound_label(line), label);
      for (std::size_t i = first; i < last; ++i) out += fmt::format("{:>{}}", cell_text(line.cells[i], seen), cell);
      out += '\n';
    }
  }
  std::string notes;
  for (const Word& word : kWords)
    if (seen.contains(word.outcome))
      notes += fmt::format("{}{}: {}", notes.empty() ? "" : "; ", word.text, word.meaning);
  if (std::any_of(frontier.lines.begin(), frontier.lines.end(), [](const Line& line) { return !line.addresses; }))
    notes += fmt::format("{}*: counts bytes, knows no addresses", notes.empty() ? "" : "\n");
  if (!notes.empty()) out += notes + '\n';
  return out;
}

}  // namespace tidepool
