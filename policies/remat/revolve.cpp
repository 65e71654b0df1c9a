#include <memory>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/chain_policy.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Binomial checkpointing: keeps only the inputs of some stages, and runs each stage forward once more right before its
/// backward step. If the inputs of s stages are kept at the same time and all stages take equal time, the number of
/// reruns of stages is the least possible (see revolve_sweeps). With the actual times and sizes, the policy takes the s
/// with the least time among those that fit, by a sum of bytes. The chain is that of linearise(). Plans in O(stages^4),
/// with a table for each s.
/// Paper: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000.
ChainSequence best_binomial(const Chain& chain, Bytes room) {
  BestOrder best{chain, room};
  for (std::size_t slots = 0; slots < chain.size(); ++slots) best.offer(revolve(chain.size(), slots));
  return best.take();
}

const RegisterPolicy kRevolve{
    {.name = "revolve",
     .kind = PolicyKind::kRemat,
     .summary = "binomial checkpointing of a chain of stages: keeps the inputs of as many stages as fit",
     .paper = "Griewank and Walther, Algorithm 799: revolve, ACM TOMS 26(1), 2000",
     .options = {{"stages", "60", "number", "most stages; neighbours with few saved bytes are merged"}},
     .make = [](const Options& options) {
       return std::make_unique<ChainPolicy>(count_of("revolve", options, "stages", 200), best_binomial);
     }}};

}  // namespace
}  // namespace tidepool
