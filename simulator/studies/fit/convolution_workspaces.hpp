// An estimate of the workspaces of cuDNN's convolutions, which neither a dry run nor PyTorch's hook sees.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// Workspace of a convolution, as a multiple of the bytes of its input and output. The factor belongs to Winograd's
/// F(4x4, 3x3), which keeps 6 x 6 values for each 4 x 4 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
/// Networks", CVPR 2016, section 4). The algorithm that cuDNN chooses is not known: implicit matrix products take fewer
/// bytes, transforms of whole images more.
constexpr double kConvolutionWorkspace = 36.0 / 16.0;
/// A multiple that nine of ten measured jobs do not exceed (tests/recording/fit_table.py).
constexpr double kLargeConvolutionWorkspace = 5;

/// The convolutions of a trace.
struct Convolutions {
  bool any = false;
  Bytes largest_workspace;  ///< estimate for the largest one; only one convolution's workspace exists at a time
};

Convolutions convolutions_of(const Trace& trace);

}  // namespace tidepool
