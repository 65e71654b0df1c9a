#include "policies/pool/stalloc/stalloc_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// STAlloc. Its rules, sources and differences are documented at StallocPlanner and StallocPool.
const RegisterPool kStalloc{
    {.name = "stalloc",
     .summary = "STAlloc: memory layers planned by size, idle ranges for what the plan does not know",
     .paper = "Huang et al., EuroSys 2026, arXiv 2507.16274; github.com/infinigence/STAlloc 3a9f97f",
     .options = {alignment_option()},
     .make = [](const Options& options) { return std::make_unique<StallocPool>(options); },
     .plan = [](const Options&) { return std::make_unique<StallocPlanner>(); }}};

}  // namespace
}  // namespace tidepool
