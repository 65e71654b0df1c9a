#include "policies/pool/smartpool/smartpool_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

SmartPoolFit fit_of(const Options& options) {
  return options.word("fit") == "first" ? SmartPoolFit::kFirst : SmartPoolFit::kBest;
}

/// The comment of class SmartPool has its rules, its source, and its differences from that source.
const RegisterPool kSmartpool{
    {.name = "smartpool",
     .summary = "SmartPool: cudaMalloc until an iteration repeats, then planned places in one pool",
     .paper = "Zhang et al., arXiv 1903.06631, section 3; github.com/junzhezhang/onlineColoring",
     .options =
         {{"fit", "best", "first|best",
           "hole that a block takes; best takes the one below all conflicting blocks only if it is the only hole, as "
           "published"}},
     .make = [](const Options& options) { return std::make_unique<SmartPool>(fit_of(options)); },
     .granule = 1_B}};

}  // namespace
}  // namespace tidepool
