#include <memory>

#include "policies/planning/eviction/next_use_victims.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

std::unique_ptr<Policy> make(const Options& options) {
  using Cost = NextUseFormula::Cost;
  const std::string& cost = options.word("cost");
  return std::make_unique<DropByNextUse>(NextUseFormula{cost == "own"         ? Cost::kOwn
                                                        : cost == "ancestors" ? Cost::kAncestors
                                                                              : Cost::kNeighbourhood,
                                                        options.number("distance")});
}

/// DTR's formula with the time until the next use, which the trace contains, in place of the time since the last use:
/// see DropByNextUse. Belady evicts by the next use. MegEngine's DTR for static graphs also divides by the distance to
/// the next use (seq_dtr.cpp).
const RegisterPolicy kNextUse{
    {.name = "next-use",
     .kind = PolicyKind::kRemat,
     .summary = "drops by cost of what it would be recomputed from, size and time until it is used again",
     .paper = "Tidepool; after Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, and Belady, 1966",
     .options = {{"cost", "ancestors", "own|ancestors|neighbourhood",
                  "own: of the version alone; ancestors: and of absent ones that it needs; neighbourhood: and of those "
                  "that need it"},
                 {"distance", "1", "number", "power of the time until the next use; 0 = any time counts the same"}},
     .make = make}};

}  // namespace
}  // namespace tidepool
