#include "simulator/commands/fit_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/launch/process.hpp"
#include "traces/error.hpp"

namespace tidepool {

std::optional<FitAdvice> advice_for(const Trace& trace, const Fit& fit, const std::string& name, bool snapshot) {
  const Bytes capacity = fit.peak.live - (fit.predicted - fit.device->total);
  if (fit.fits || capacity <= Bytes{}) return {};
  FitAdvice advice{.capacity = capacity, .commands = {}};
  if (snapshot) {
    advice.missing = "a snapshot has no operators and modules";
  } else {
    try {
      RunSpec spec;
      spec.capacity = capacity;
      spec.machine = find_machine("a100-pcie4");
      const AdvisedStep step = step_to_advise(trace);
      for (const Change& change : advise(step, {name, spec.machine.name}, spec, {kinds_of_changes(), {}}).changes) {
        const auto same = [&](const Change& other) { return other.kind == change.kind; };
        if (std::none_of(advice.changes.begin(), advice.changes.end(), same)) advice.changes.push_back(change);
      }
    } catch (const InputError& error) {
      advice.missing = error.what();
    }
  }
  std::string file = shell_word(name);
  if (name.empty() || !advice.missing.empty()) {
    file = "run.tide";
    advice.commands.push_back("tidepool record --dry --torch -o run.tide -- COMMAND");
  }
  advice.commands.push_back(fmt::format("tidepool advise {} --capacity {}B", file, capacity.count()));
  return advice;
}

std::string text_of(const FitAdvice& advice) {
  std::string text = fmt::format("\nwhat to do: {} are left for the step's tensors\n", to_text(advice.capacity));
  if (!advice.missing.empty()) text += fmt::format("  no advice yet: {}\n", advice.missing);
  for (const Change& change : advice.changes) {
    const std::size_t modules = change.modules.size();
    text += fmt::format("  {:<21}{}{}{} alive at the peak, time {:+.1f} %{}\n", change.kind,
                        modules == 0 ? "" : fmt::format("{} module{}: ", modules, modules == 1 ? "" : "s"),
                        change.peak_is_least ? "at least " : "", to_text(change.peak),
                        (change.overhead_ratio - 1) * 100, change.fits ? "" : "; not enough");
  }
  text += "  as code, from:\n";
  for (const std::string& command : advice.commands) text += fmt::format("    {}\n", command);
  return text;
}

}  // namespace tidepool
