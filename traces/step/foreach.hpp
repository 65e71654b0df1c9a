// Division of ops on lists of tensors into one op for each tensor.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// PyTorch's optimizers call operators such as `aten::_foreach_add_(self[], other[])`, which do the same to every
/// tensor of their lists, independently: PyTorch documents each as a loop over the lists (torch/_refs, torch.optim's
/// `foreach=False`). The result has one op for each tensor in their place. The i-th op uses the i-th entry of every
/// list, and its share of the time is its share of the bytes. An op stays whole if its uses do not divide into lists of
/// one length whose i-th entries have one size (a larger one where an entry is read and shares its buffer), or if the
/// evidence for its uses is weaker than the operator's schema.
Trace split_foreach(const Trace& trace);

}  // namespace tidepool
