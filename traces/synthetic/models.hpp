// Synthetic training steps of a residual network and of a GPT-like model, of any depth.
#pragma once

#include "traces/synthetic/step_writer.hpp"

namespace tidepool {

struct ResnetShape {
  std::int64_t layers = 110;  ///< 6 n + 2: the first, three stages of n blocks of two layers, and the last
  std::int64_t width = 16;    ///< channels of the first stage; each further one has twice as many
  std::int64_t image = 32;    ///< pixels a side; each further stage has half as many
  std::int64_t batch = 128;   ///< images
};

/// Forward, backward and SGD with momentum of a network as in He et al., "Deep Residual Learning" (CVPR 2016), section
/// 4.2, with activations and their gradients in half precision, and parameters, their gradients and momentum in single
/// precision: 3 x 3 convolutions, each with batch normalisation, and ReLU in place. The second and third stage begin
/// with stride 2 and a parallel 1 x 1 convolution; otherwise, all blocks of a stage have the same ops.
/// @param shape  layers at least 8 and 6 n + 2, the rest 1 to 10^6, image a multiple of 4
/// @throws InputError  "112 layers; expected 6 n + 2, as 110", "image of 6 pixels; expected a multiple of 4", and
///                     StepWriter's message for a step that is too large
Trace resnet_step(const ResnetShape& shape, const Roofline& roofline = {});

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
