// Steps that free inputs later, so that large content can be recomputed from small content.
#pragma once

#include <optional>

#include "traces/base/quantity.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The same step, in which small inputs of the producers of large idle content stay until that content is read. The
/// gradient of a weight, for example, takes a thousand times the bytes of the activations that it is made of, and lies
/// idle until the optimizer runs. Recomputing it is cheap as long as these activations are not freed; afterwards they
/// would have to be recomputed as well. A plan of the returned step is also a plan of the given step, since a plan may
/// free a buffer after the program does. None if no free would be later.
///
/// Cost: for each large content, its readers, and the inputs of its producer up to an eighth of its size.
/// @param least  bytes of large content, at least
std::optional<Trace> with_later_frees(const Trace& trace, Bytes least);

}  // namespace tidepool
