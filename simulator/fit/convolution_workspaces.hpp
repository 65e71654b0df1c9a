// An estimate of the workspaces of cuDNN's convolutions, which neither a dry run nor PyTorch's hook sees.
#pragma once

#include <optional>

#include "traces/trace.hpp"

namespace tidepool {

/// Workspace of a convolution, as a multiple of the bytes of its input and output. The factor is that of Winograd's
/// F(4x4, 3x3), which keeps 6 x 6 values for each 4 x 4 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
/// Networks", CVPR 2016, section 4). It is not known which algorithm cuDNN chooses: implicit products take less,
/// transforms of whole images more.
constexpr double kConvolutionWorkspace = 36.0 / 16.0;

/// The buffers of a trace, with a workspace for each convolution while it runs.
struct ConvolutionWorkspaces {
  Trace trace;    ///< without ops
  Bytes largest;  ///< bytes of the largest workspace
};

/// @return  nothing if the trace has no convolutions
std::optional<ConvolutionWorkspaces> with_convolution_workspaces(const Trace& trace);

}  // namespace tidepool
