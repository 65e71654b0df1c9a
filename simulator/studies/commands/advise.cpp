// tidepool advise: changes of a training script that make its step fit a capacity.
#include "simulator/studies/advise/advise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "simulator/options.hpp"
#include "simulator/studies/fit/dry_recording.hpp"
#include "simulator/studies/fit/stated_memory.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/step/instant.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

struct AdviseArguments {
  std::string trace, apply, kinds, plans = "tide,tide-remat";
  GridText grid{.capacity = ""};
  std::string time_limit = "50s";
  bool json = false, check = false;
  std::vector<std::string> command;
};

using Json = nlohmann::ordered_json;

/// @throws InputError  "no kind of change named 'offlod', did you mean 'offload'?; known: ..."
AdviceOptions tried_of(const AdviseArguments& arguments) {
  AdviceOptions tried{.kinds = arguments.kinds.empty() ? kinds_of_changes() : split_list(arguments.kinds),
                      .planners = split_list(arguments.plans)};
  for (const std::string& kind : tried.kinds)
    if (const auto& known = kinds_of_changes(); std::find(known.begin(), known.end(), kind) == known.end())
      throw InputError{unknown_name("kind of change", kind, known)};
  if (!arguments.apply.empty() || arguments.plans == "none") tried.planners.clear();
  return tried;
}

void print_json(const AdviseArguments& arguments, const AdvisedStep& step, const RunSpec& spec, const Advice& advice) {
  Json object{{"trace", arguments.trace},
              {"step_hash", step.trace.hash()},
              {"iteration", step.iteration ? Json(*step.iteration) : Json(nullptr)},
              {"machine", spec.machine.name},
              {"pool", spec.pool.text},
              {"capacity_bytes", spec.capacity.count()}};
  object.update(to_json(advice));
  fmt::print("{}\n", json_text(object));
}

std::string indented(const std::string& text) {
  std::string lines;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find('\n', i), text.size());
    lines += (end > i ? "    " : "") + text.substr(i, end - i) + "\n";
    i = end + 1;
  }
  return lines;
}

/// The first line, which is printed before any change is tried.
void print_question(const AdviseArguments& arguments, const RunSpec& spec, const Trace& step) {
  const Bytes peak = step.ideal_peak();
  fmt::print("{}: {} at the peak, {} ({}) wanted\n", printable(arguments.trace), to_text(peak), to_text(spec.capacity),
             fraction_text(spec.capacity, peak));
  std::fflush(stdout);
}

/// The reason why the job does not fit although its step may; "" if there is none.
std::string beyond_step(const RunSpec& spec, const Trace& step) {
  return stated_memory(step).allocated > spec.capacity ? outside_text(step) : "";
}

void print_text(const RunSpec& spec, const Advice& advice, const std::string& beyond) {
  const bool fits = !advice.changes.empty() && advice.changes.front().fits;
  fmt::print("{}\n", advice.reserved ? fmt::format("PyTorch's allocator reserves {}{}", to_text(*advice.reserved),
                                                   fits ? "; with one of its settings the step fits"
                                                        : ", and no setting of it that was tried makes it fit")
                     : advice.base_peak <= spec.capacity
                         ? beyond.empty() ? "it fits as it is" : "the step fits as it is, the job does not: " + beyond
                     : fits
                         ? "changes: first those that fit, of these first those with a certain peak, each group by time"
                     : advice.changes.empty() ? "nothing that was tried lowers the peak by 1 % or more"
                                              : "no change fits; these come nearest");
  for (std::size_t i = 0; i < advice.changes.size(); ++i) {
    const Change& change = advice.changes[i];
    const char* const least = change.peak_is_least ? "at least " : "";
    fmt::print(
        "\n{}. {}{}{}{}\n   peak {}{} ({}), time {}{:+.2f} %{}", i + 1, change.kind,
        change.modules.empty()
            ? ""
            : fmt::format(" {} module{}", change.modules.size(), change.modules.size() == 1 ? "" : "s"),
        change.parts > 0 ? fmt::format(" in {} parts", change.parts) : "",
        change.fits ? "" : fmt::format(", does not fit: {}{} too much", least, to_text(change.peak - spec.capacity)),
        least, to_text(change.peak), fraction_text(change.peak, advice.base_peak), change.parts > 0 ? "at least " : "",
        (change.overhead_ratio - 1) * 100, to_text(change.between));
    if (change.allocated) fmt::print(", {} in blocks of PyTorch's allocator", to_text(*change.allocated));
    if (change.reserved) fmt::print(", {} reserved", to_text(*change.reserved));
    if (change.copied > Bytes{}) fmt::print(", {} to the host and back", to_text(change.copied));
    if (change.bound)
      fmt::print("; no plan of this kind takes less than {}; this one takes {:.2f} % more", to_text(*change.bound),
                 *change.gap * 100);
    fmt::print("\n\n{}", indented(change.code));
  }
}

/// Says of a kind that it is done, once the user has waited for longer than a glance.
void tell_done(std::chrono::steady_clock::time_point begin, const std::string& kind,
               const std::vector<Change>& changes) {
  const auto waited = std::chrono::steady_clock::now() - begin;
  if (waited < std::chrono::seconds{2}) return;
  const auto least = std::min_element(changes.begin(), changes.end(),
                                      [](const Change& a, const Change& b) { return a.peak < b.peak; });
  say("advise: {} is done after {:.0f} s: {}\n", kind, std::chrono::duration<double>(waited).count(),
      changes.empty() ? "no change" : fmt::format("peak {}", to_text(least->peak)));
}

/// Prints the code of the best change that is Python. @return  the exit code
int apply(const RunSpec& spec, const Advice& advice, const std::string& beyond) {
  if (advice.reserved) {
    const bool set = !advice.changes.empty();
    say("advise: the step's tensors fit, PyTorch's allocator reserves {}{}\n", to_text(*advice.reserved),
        set ? "; no change of the script is needed but\n" + advice.changes.front().code : "");
    return set ? 0 : 1;
  }
  if (advice.base_peak <= spec.capacity) {
    say("advise: the step fits as it is{}\n",
        beyond.empty() ? ": its peak is " + to_text(advice.base_peak) : ", the job does not: " + beyond);
    return beyond.empty() ? 0 : 1;
  }
  const auto found = std::find_if(advice.changes.begin(), advice.changes.end(),
                                  [](const Change& change) { return change.is_python(); });
  if (found == advice.changes.end()) {
    say("advise: no change of the script that was tried lowers the peak by 1 % or more\n");
    return 1;
  }
  if (!found->fits) {
    say("advise: no change of the script fits; {} comes nearest: its peak is {}\n", found->kind, to_text(found->peak));
    return 1;
  }
  fmt::print("{}", found->code);
  return 0;
}

/// Records the command again with the best change of the script, and compares the peak with the promised one.
/// @param step  of which the change is @return  the exit code
int check(const AdviseArguments& arguments, const RunSpec& spec, const Trace& step, const Advice& advice) {
  const auto found = std::find_if(advice.changes.begin(), advice.changes.end(),
                                  [](const Change& change) { return change.is_python(); });
  if (found == advice.changes.end()) {
    say("advise: --check: there is no change of the script to check\n");
    return 1;
  }
  const std::optional<Trace> changed = record_changed(arguments.command, dry_device(step), dry_rank(step), found->code);
  if (!changed) return Interruptible::code();
  const Bytes peak = step_to_advise(*changed).trace.ideal_peak();
  const double off = static_cast<double>((peak - found->peak).count()) / static_cast<double>(found->peak.count());
  fmt::print("\nchecked: with {}, the recorded step takes {}, {}{} promised: {:+.2f} %\n", found->kind, to_text(peak),
             found->peak_is_least ? "at least " : "", to_text(found->peak), off * 100);
  return peak <= spec.capacity ? 0 : 1;
}

int run_advise(const AdviseArguments& arguments) {
  if (arguments.check != !arguments.command.empty())
    refuse("--check: expected it with a command after --, as in --check -- python3 train.py");
  if (arguments.check && (arguments.json || !arguments.apply.empty()))
    refuse("--check: expected it without --json and --apply");
  if (!arguments.apply.empty() && arguments.apply != "pytorch")
    refuse("--apply: '{}' is no framework that code can be written for; expected pytorch", arguments.apply);
  if (!arguments.apply.empty() && arguments.json) refuse("--apply: expected it without --json");
  AdviceOptions tried = tried_of(arguments);
  const auto begin = std::chrono::steady_clock::now();
  tried.limit = std::chrono::milliseconds{
      naming("--time-limit", [&] { return parse_nanos(arguments.time_limit); }).count() / 1'000'000};
  tried.done = [begin](const std::string& kind, const std::vector<Change>& changes) {
    tell_done(begin, kind, changes);
  };
  Trace trace = load_trace(arguments.trace);
  try {
    require_one_memory(trace, "`advise` changes one");
    const AdvisedStep step = step_to_advise(std::move(trace));
    const Grid grid{arguments.grid, step.trace};
    if (grid.size() != 1) refuse("--capacity, --machine: the lists ask for {} answers; expected one", grid.size());
    const RunSpec spec = grid.at(0);
    if (arguments.check && dry_device(step.trace).empty())
      refuse(
          "--check: the trace is not of a dry run, with which a change is recorded; expected one of `record --dry "
          "--torch`");
    if (spec.capacity == kNoLimit) refuse("--capacity: expected a limit, as in 0.6x or 16GiB");
    const bool text = arguments.apply.empty() && !arguments.json;
    if (text && missing_for_advice(step.trace).empty()) print_question(arguments, spec, step.trace);
    const Interruptible interruptible;
    const Advice advice = advise(step, {arguments.trace, arguments.grid.machine}, spec, tried);
    const std::string beyond = beyond_step(spec, step.trace);
    for (const std::string& note : advice.notes) say("advise: {}\n", note);
    if (!beyond.empty() && advice.base_peak > spec.capacity) say("advise: {}\n", beyond);
    if (!error_of_times(step.trace).empty()) say("advise: {}\n", caveat_of_times(step.trace));
    if (!arguments.apply.empty()) return apply(spec, advice, beyond);
    if (arguments.json)
      print_json(arguments, step, spec, advice);
    else
      print_text(spec, advice, beyond);
    if (Interruptible::asked()) return Interruptible::code();
    if (arguments.check) return check(arguments, spec, step.trace, advice);
    return (advice.base_peak <= spec.capacity && !advice.reserved && beyond.empty()) ||
                   (!advice.changes.empty() && advice.changes.front().fits)
               ? 0
               : 1;
  } catch (const InputError& error) {
    throw error.at(arguments.trace);
  }
}

const RegisterCommand kAdvise{
    {.name = "advise",
     .summary = "changes of a training script that make its step fit a capacity, each with its cost",
     .seldom = {"--pool", "--kinds"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<AdviseArguments>();
       app.add_option("trace", arguments->trace, "a trace of `record --torch` or `record --dry --torch`").required();
       app.add_option("--capacity", arguments->grid.capacity,
                      "16GiB, 0.6x or 60% (of the step's peak), or machine (its memory)")
           .required();
       app.add_option("--machine", arguments->grid.machine, "NAME (tidepool machines lists them) or a machine file")
           .capture_default_str();
       app.add_option("--pool", arguments->grid.pool, "where a plan places buffers").capture_default_str();
       app.add_option("--kinds", arguments->kinds,
                      fmt::format("of changes that are tried: {} (all)", fmt::join(kinds_of_changes(), ", ")));
       app.add_option("--plans", arguments->plans, "policies whose plans are tried; none: no plans")
           .capture_default_str();
       app.add_option("--time-limit", arguments->time_limit,
                      "of the processor, for all kinds together: each may take half of what is left, plans come last")
           .capture_default_str();
       app.add_option("--apply", arguments->apply,
                      "pytorch: print only the Python file of the best change of the script, with apply(model)");
       app.add_flag(
           "--check", arguments->check,
           "record the command dry with the best change of the script, and print what it takes beside the promise");
       app.add_option("command", arguments->command, "after --: the script's command, for --check");
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_advise(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
