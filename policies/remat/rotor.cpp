#include "policies/planning/remat/rotor.hpp"

#include <memory>

#include "policies/planning/remat/chain_policy.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The persistent order of the step's chain of stages that takes least time within the capacity, by the dynamic program
/// of the paper. If no order fits, the order for the least capacity that has one is taken. The chain is that of
/// linearise(): a network that is no chain is cut at its articulation points, and all ops between two of them are one
/// stage. Plans in O(slots * stages^3). With a pool of addresses, add an online policy: "rotor+dtr-eq".
/// Paper: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous chains", 2019.
const RegisterPolicy kRotor{
    {.name = "rotor",
     .kind = PolicyKind::kRemat,
     .summary = "the best persistent order of a chain of stages: each keeps all, its input or nothing",
     .paper = "Beaumont et al., Optimal checkpointing for heterogeneous chains, 2019 (hal-02352969)",
     .options = {{"stages", "60", "number", "most stages; neighbours with few saved bytes are merged"},
                 {"slots", "500", "number", "parts into which memory is divided; sizes are rounded up to them"}},
     .make = [](const Options& options) {
       const int slots = count_of<int>("rotor", options, "slots", 2000);
       return std::make_unique<ChainPolicy>(
           count_of("rotor", options, "stages", 200),
           [slots](const Chain& chain, Bytes room) { return best_persistent(chain, room, slots); });
     }}};

}  // namespace
}  // namespace tidepool
