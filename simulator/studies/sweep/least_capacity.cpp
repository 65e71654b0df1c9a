#include "simulator/studies/sweep/least_capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/engine/machine/machine_file.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

namespace {

/// Runs that differ in capacity only.
struct Ladder {
  std::vector<SweepTask> tasks;  // by ascending capacity
  std::vector<Bytes> capacities;
  Bisection search;
};

std::string key_of(std::span<const SweepPart> parts, const SweepTask& task) {
  const SweepPart& part = parts[task.part];
  return run_key(part.trace.trace, part.grid.at(task.index));
}

std::vector<Ladder> ladders(std::span<const SweepPart> parts, const Shard& shard) {
  std::vector<Ladder> all;
  for (std::uint32_t part = 0; part < parts.size(); ++part) {
    using Name = std::tuple<std::string, std::string, std::string, std::uint64_t>;
    std::map<Name, std::vector<std::pair<Bytes, SweepTask>>> rungs;
    std::vector<Name> order;
    for (std::size_t i = 0; i < parts[part].grid.size(); ++i) {
      const RunSpec spec = parts[part].grid.at(i);
      const Name name{machine_file(spec.machine), spec.policy.text, spec.pool.text, spec.seed};
      std::vector<std::pair<Bytes, SweepTask>>& of_name = rungs[name];
      if (of_name.empty()) order.push_back(name);
      of_name.emplace_back(spec.capacity, SweepTask{part, i});
    }
    for (const Name& name : order) {
      std::vector<std::pair<Bytes, SweepTask>>& sorted = rungs[name];
      std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      if (!shard.has(key_of(parts, sorted[0].second))) continue;
      Ladder ladder{{}, {}, Bisection{sorted.size()}};
      for (const auto& [capacity, task] : sorted) {
        ladder.capacities.push_back(capacity);
        ladder.tasks.push_back(task);
      }
      all.push_back(std::move(ladder));
    }
  }
  return all;
}

Answer answer_of(const Ladder& ladder, std::span<const SweepPart> parts) {
  const std::optional<std::size_t> least = ladder.search.least();
  const SweepTask& task = ladder.tasks[least.value_or(ladder.tasks.size() - 1)];
  Answer answer{.part = task.part,
                .key = key_of(parts, task),
                .found = least.has_value(),
                .runs = ladder.search.trials(),
                .points = ladder.tasks.size()};
  for (const std::size_t place : ladder.search.exceptions()) answer.fails_above.push_back(ladder.capacities[place]);
  return answer;
}

}  // namespace

bool Objective::holds(const Row& row) const {
  if (metric == Metric::kOutcome) return at(row, "outcome") == Value{std::string{to_text(outcome)}};
  const auto* reached = std::get_if<double>(&at(row, metric == Metric::kGap ? "gap" : "overhead_ratio"));
  if (reached == nullptr || at(row, "outcome") != Value{std::string{to_text(Outcome::kOk)}}) return false;
  const double value = metric == Metric::kGap ? *reached : *reached - 1;
  return inclusive ? value <= limit : value < limit;
}

Objective parse_objective(std::string_view text) {
  const InputError refusal{
      fmt::format("'{}' is no objective; expected overhead<1%, gap<2% (or <=) or outcome=ok", text)};
  Objective objective;
  if (text.starts_with("outcome=")) {
    try {
      objective.outcome = find_outcome(text.substr(8));
    } catch (const InputError&) {
      throw refusal;
    }
    return objective;
  }
  const std::size_t sign = text.find('<');
  if (sign == std::string_view::npos || !text.ends_with('%')) throw refusal;
  const std::string_view name = text.substr(0, sign);
  if (name != "overhead" && name != "gap") throw refusal;
  objective.metric = name == "gap" ? Objective::Metric::kGap : Objective::Metric::kOverhead;
  objective.inclusive = text.substr(sign).starts_with("<=");
  const std::string_view number = text.substr(sign + (objective.inclusive ? 2 : 1));
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size() - 1, percent);
  if (error != std::errc{} || end != number.data() + number.size() - 1 || !std::isfinite(percent) || percent < 0)
    throw refusal;
  objective.limit = percent / 100;
  return objective;
}

std::vector<Answer> find_least(std::span<const SweepPart> parts, const Objective& objective, Database& database,
                               const SweepOptions& options, SweepProgress& progress) {
  std::vector<Ladder> all = ladders(parts, options.shard);
  while (!(options.stop && *options.stop)) {
    std::vector<SweepTask> tasks;
    for (const Ladder& ladder : all)
      for (const std::size_t place : ladder.search.wanted()) tasks.push_back(ladder.tasks[place]);
    if (tasks.empty()) break;
    sweep(parts, tasks, database, options, progress);
    for (Ladder& ladder : all)
      for (const std::size_t place : ladder.search.wanted())
        if (const auto row = database.find(key_of(parts, ladder.tasks[place])))
          ladder.search.tell(place, objective.holds(*row));
  }
  std::vector<Answer> answers;
  for (const Ladder& ladder : all)
    if (ladder.search.wanted().empty()) answers.push_back(answer_of(ladder, parts));
  return answers;
}

std::pair<std::ptrdiff_t, std::ptrdiff_t> Bisection::bracket() const {
  const auto holds =
      static_cast<std::ptrdiff_t>(std::find(known_.begin(), known_.end(), std::optional<bool>{true}) - known_.begin());
  std::ptrdiff_t fails = holds - 1;
  while (fails >= 0 && known_[static_cast<std::size_t>(fails)] != std::optional<bool>{false}) --fails;
  return {holds, fails};
}

std::vector<std::size_t> Bisection::wanted() const {
  if (known_.empty()) return {};
  if (!known_.back()) return {known_.size() - 1};
  const auto [holds, fails] = bracket();
  if (holds == static_cast<std::ptrdiff_t>(known_.size())) return {};
  if (holds - fails > 1) return {static_cast<std::size_t>(fails + (holds - fails) / 2)};
  std::vector<std::size_t> neighbours;
  for (const std::ptrdiff_t place : {holds - 2, holds + 1})
    if (place >= 0 && place < static_cast<std::ptrdiff_t>(known_.size()) && !known_[static_cast<std::size_t>(place)])
      neighbours.push_back(static_cast<std::size_t>(place));
  return neighbours;
}

std::optional<std::size_t> Bisection::least() const {
  const auto place = static_cast<std::size_t>(bracket().first);
  return place < known_.size() ? std::optional{place} : std::nullopt;
}

std::vector<std::size_t> Bisection::exceptions() const {
  std::vector<std::size_t> above;
  for (std::size_t place = least().value_or(known_.size()); place < known_.size(); ++place)
    if (known_[place] == std::optional<bool>{false}) above.push_back(place);
  return above;
}

std::size_t Bisection::trials() const {
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [](const auto& k) { return k.has_value(); }));
}

}  // namespace tidepool
