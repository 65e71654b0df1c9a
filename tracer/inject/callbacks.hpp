// State of a thread of the job between the callbacks of its calls.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace tidepool::inject {

struct Thread {
  std::uint32_t session = 0;               ///< the recording in which the next three members are valid
  std::uint32_t outer_correlation = 0;     ///< of the runtime call that contains the current call; 0 = none
  std::uint32_t inner_correlation = 0;     ///< of a runtime call inside the outer one; 0 = none
  std::uint32_t depth = 0;                 ///< calls with callbacks that the thread is in
  std::vector<CUgraphNode> created_nodes;  ///< nodes of graphs that the current driver call has created
  cupti::ParameterScan scan;               ///< a member, so that its memory is reused
};

Thread& this_thread();

/// The correlation id of the call's records: that of the runtime call around it, if there is one.
std::uint32_t correlation_of(const CUpti_CallbackData& data);

}  // namespace tidepool::inject
