// What published simulators assumed, by the name given to --assume.
#include "simulator/options.hpp"
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

}  // namespace

Assumptions Assumptions::find(const std::string& name) {
  if (name.empty()) return {};
  if (name == "simrd") return simrd();
  throw InputError{unknown_name("assumptions", name, {"simrd"})};
}

}  // namespace tidepool
