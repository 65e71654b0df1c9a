#include <memory>

#include "policies/planning/remat/chain_policy.hpp"
#include "policies/planning/remat/rotor.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Cuts the step into a chain of blocks. Integer programs find a few options for each block: ways to keep part of its
/// values. Rotor's dynamic program then chooses the options of blocks and the blocks to rerun (section 3 of the paper).
/// A block's program is Checkmate's over its own ops with two budgets: for its backward step, and for the values that
/// it keeps until then (section 3.2, rk-Checkmate). Blocks that differ only in times are solved once.
///
/// Differences from Rockmate: blocks are the stages of linearise(), which are found in the recorded ops, not in the
/// model's code. A block's values are put into at most `groups` groups. Its forward ops run once, in their order, and
/// drop the values that the option does not keep; only its backward step reruns ops. The solver is CBC in the place of
/// Gurobi: a program ends after `nodes` nodes, not after a time, so that the answer is the same in every run. The best
/// schedule found until then is an option; if none was found, the program gives no option. The numbers of budgets are
/// Rockmate's. An option is left out if another one is at least as good.
///
/// With a pool that gives addresses, add an online policy: "rockmate+dtr-eq". Plans in O(slots * stages^2 * (stages +
/// options)), plus the time of saves * peaks programs for each different block.
/// Paper: Zhao, Le Hellard, Eyraud-Dubois, Gusak, Beaumont, "Rockmate: an Efficient, Fast, Automatic and Generic Tool
/// for Re-materialization in PyTorch", ICML 2023; code: topal-team/rockmate.
const RegisterPolicy kRockmate{
    {.name = "rockmate",
     .kind = PolicyKind::kRemat,
     .summary = "rotor over blocks, with integer programs that choose which values a block keeps",
     .paper = "Rockmate: Zhao et al., ICML 2023",
     .options = {{"groups", "6", "number", "most groups of a block's values"},
                 {"saves", "10", "number", "budgets of a block for the bytes that it keeps"},
                 {"peaks", "3", "number", "budgets of a block for its backward step"},
                 {"nodes", "200", "number", "most nodes of branch and bound for each program"},
                 {"stages", "60", "number", "most blocks; neighbours with few saved bytes are merged"},
                 {"slots", "500", "number", "parts into which memory is divided; sizes are rounded up to them"}},
     .make = [](const Options& options) {
       const int slots = count_of<int>("rockmate", options, "slots", 2000);
       const StagePrograms programs = programs_of("rockmate", options);
       return std::make_unique<ChainPolicy>(
           count_of("rockmate", options, "stages", 200),
           [slots](const Chain& chain, Bytes room) { return best_persistent(chain, room, slots); },
           [programs](const Trace& trace, TraceChain& chain) { add_options(trace, chain, programs); });
     }}};

}  // namespace
}  // namespace tidepool
