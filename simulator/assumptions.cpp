// What published simulators assumed, by the name given to --assume.
#include "simulator/options.hpp"
#include "simulator/rerun_rules.hpp"
#include "simulator/run.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

/// The simulator of the DTR authors (simrd, of uwsampl/dtr-prototype): tensors are never written in place, a view is a
/// tensor that must be made again, constants stay, and its clock starts at 1.
Assumptions simrd() {
  return {.name = "simrd",
          .copy_on_write = true,
          .replay_views = true,
          .keep_recomputed = true,
          .pin_sources = true,
          .clock_start = Nanos{1}};
}

/// The graphs of Checkmate's and Moccasin's problems: what is held all the time stays. See rerun_rules for the rest:
/// memory is a sum of bytes (--pool ideal), an output and all that is held count while an op runs, and a value goes
/// after its last reader before its next run, which is as much as going after a reader or at the end of a stage admits.
Assumptions rerun_graph(const std::string& name) {
  Assumptions assume;
  assume.name = name;
  assume.pin_sources = true;
  return assume;
}

}  // namespace

RerunRules rerun_rules(const Assumptions& assume) {
  if (assume.name == "checkmate") return {.in_order = true, .most_runs = 0};
  if (assume.name == "moccasin") return {.in_order = true, .most_runs = 2};
  return {};
}

Assumptions Assumptions::find(const std::string& name) {
  if (name.empty()) return {};
  if (name == "simrd") return simrd();
  if (name == "checkmate" || name == "moccasin") return rerun_graph(name);
  throw InputError{unknown_name("assumptions", name, {"checkmate", "moccasin", "simrd"})};
}

}  // namespace tidepool
