// State of a thread of the job between the callbacks of its calls.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace tidepool::inject {

struct Thread {
  std::uint32_t session = 0;  ///< in which outer_correlation holds: no call that began in another one says its end
  std::uint32_t outer_correlation = 0;     ///< of the runtime call that the thread is in; 0 = none
  std::vector<CUgraphNode> created_nodes;  ///< by the driver call that the thread is in: it is being captured
  cupti::ParameterScan scan;               ///< kept for its memory
};

Thread& this_thread();

/// The id that the records of the call carry: that of the runtime's call, where there is one.
std::uint32_t correlation_of(const CUpti_CallbackData& data);

}  // namespace tidepool::inject
