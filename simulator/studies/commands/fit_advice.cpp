#include "simulator/studies/commands/fit_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "simulator/studies/fit/dry_recording.hpp"
#include "simulator/studies/launch/process.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

namespace {

bool is_plain(const std::string& word) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("_./=:,@%+-", c) != nullptr; };
  return !word.empty() && std::all_of(word.begin(), word.end(), plain);
}

/// The command that records the job on a simulated device of the same kind that never runs out of memory. The kind
/// matters: the kernels and the number of temporary tensors of a job depend on its device.
std::string recording_of(const FitSource& source, const DeviceBudget& device) {
  std::string command;
  for (const std::string& word : source.command)
    command += (command.empty() ? "" : " ") + (is_plain(word) ? word : shell_word(word));
  return fmt::format("tidepool record --dry --torch --device {} --capacity {} -o run.tide -- {}", device.name,
                     kEndlessMemory, command.empty() ? "COMMAND" : command);
}

}  // namespace

std::optional<FitAdvice> advice_for(const Trace& trace, const Fit& fit, const FitSource& source) {
  const Bytes capacity = fit.peak.live - (fit.predicted - fit.device->total);
  if (fit.fits || capacity <= Bytes{}) return {};
  FitAdvice advice{.capacity = capacity, .commands = {}};
  if (source.snapshot) {
    advice.missing = "a snapshot has no operators and modules";
  } else {
    try {
      RunSpec spec;
      spec.capacity = capacity;
      spec.machine = issuing(find_machine("a100-pcie4"), trace);
      const AdvisedStep step = step_to_advise(trace);
      const Advice found = advise(step, {source.file, spec.machine.name}, spec,
                                  {.kinds = kinds_of_changes(), .planners = {}, .limit = kAdviceBeside});
      advice.complete = found.complete;
      for (const Change& change : found.changes) {
        const auto same = [&](const Change& other) { return other.kind == change.kind; };
        if (std::none_of(advice.changes.begin(), advice.changes.end(), same)) advice.changes.push_back(change);
      }
    } catch (const InputError& error) {
      advice.missing = error.what();
    }
  }
  std::string file = shell_word(source.file);
  if (source.file.empty() || !advice.missing.empty()) {
    file = "run.tide";
    advice.commands.push_back(recording_of(source, *fit.device));
  }
  // A snapshot needs a new verdict first: the peak of a job that failed is not the peak of its step.
  advice.commands.push_back(source.snapshot ? fmt::format("tidepool fit run.tide {}", options_of(*fit.device))
                                            : fmt::format("tidepool advise {} --capacity {}B", file, capacity.count()));
  return advice;
}

std::string text_of(const FitAdvice& advice) {
  std::string text = fmt::format("\nwhat to do: {} are left for the step's tensors\n", to_text(advice.capacity));
  if (!advice.missing.empty()) text += fmt::format("  no advice yet: {}\n", advice.missing);
  for (const Change& change : advice.changes) {
    const std::size_t modules = change.modules.size();
    text +=
        fmt::format("  {:<21}{}{}{} alive at the peak, time {:+.1f} %{}{}\n", change.kind,
                    modules == 0 ? "" : fmt::format("{} module{}: ", modules, modules == 1 ? "" : "s"),
                    change.peak_is_least ? "at least " : "", to_text(change.peak), (change.overhead_ratio - 1) * 100,
                    to_text(change.between, 1), change.fits ? "" : "; not enough");
  }
  if (!advice.complete)
    text += fmt::format("  not all kinds of changes were tried within {} s; with --time-limit, `advise` takes longer\n",
                        kAdviceBeside.count());
  text +=
      advice.changes.empty() ? "  commands that lead to advice:\n" : "  commands that print these changes as code:\n";
  for (const std::string& command : advice.commands) text += fmt::format("    {}\n", command);
  return text;
}

nlohmann::ordered_json to_json(const FitAdvice& advice) {
  nlohmann::ordered_json object{{"capacity_bytes", advice.capacity.count()},
                                {"changes", nlohmann::ordered_json::array()},
                                {"commands", advice.commands}};
  for (const Change& change : advice.changes) {
    nlohmann::ordered_json& one =
        object["changes"].emplace_back(nlohmann::ordered_json{{"kind", change.kind},
                                                              {"modules", change.modules},
                                                              {"fits", change.fits},
                                                              {"peak_bytes", change.peak.count()},
                                                              {"overhead_ratio", change.overhead_ratio}});
    if (change.between) one["time_low_ratio"] = change.between->first, one["time_high_ratio"] = change.between->second;
  }
  if (!advice.missing.empty()) object["missing"] = advice.missing;
  if (!advice.complete) object["complete"] = false;
  return object;
}

}  // namespace tidepool
