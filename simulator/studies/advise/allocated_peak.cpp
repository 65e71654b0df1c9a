#include "simulator/studies/advise/allocated_peak.hpp"

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/pack.hpp"
#include "simulator/solvers/packing/repeat.hpp"

namespace tidepool {

Bytes allocated_peak(const Trace& step) {
  constexpr int kSteps = 2;  // the second step begins with the blocks that the first one left in the cache
  const PoolInfo& pool = find_pool("pytorch");
  return pack(repeat_lifetimes(step, kSteps), pool, Options{pool.name, pool.options, {}}, {}).placed;
}

}  // namespace tidepool
