// A synthetic training step of a GPT-like model of any depth.
#pragma once

#include "traces/synthetic/step_writer.hpp"

namespace tidepool {

struct GptShape {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t sequence = 1024;  ///< tokens
  std::int64_t vocabulary = 50'304;
  std::int64_t batch = 8;          ///< sequences per micro-batch
  std::int64_t micro_batches = 1;  ///< gradients are summed in place
};

/// Forward, backward and Adam, half precision, with single-precision moments and weights of the optimizer. A layer is
/// pre-norm: norm, attention that keeps only its row sums (FlashAttention, Dao et al., NeurIPS 2022), projection, norm,
/// and two linear maps with GELU between; each half is added to its own input. Linear maps have no biases; a norm's
/// scale and shift are one buffer. There is no dropout. The token embedding is the output map as well.
/// Every layer of a phase has the same ops, so the step consists of two runs of layers per micro-batch and one of
/// updates.
/// @param shape  each number from 1 to 10^6
/// @throws InputError  "5 heads; expected a divisor of the width, 768", and StepWriter's message for a step that is too
///                     large
Trace gpt_step(const GptShape& shape, const Roofline& roofline = {});

}  // namespace tidepool
