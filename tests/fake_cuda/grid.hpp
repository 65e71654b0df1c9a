// The part of the CUDA language that kernels.cu uses, for a compiler of host code. The threads of a launch run one
// after the other. The threads of a warp run from the last to the first, so that a thread that shuffles down finds the
// values of later threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#define __device__
#define __global__

namespace tidepool::cuda {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

/// The current launch.
struct Grid {
  static constexpr unsigned kWarp = 32;
  static constexpr double kReadTime = 100;  ///< ns that a thread takes to read the timer

  double now = 0;                                          ///< ns
  std::uint64_t tick = 1;                                  ///< ns between two values of the global timer
  std::array<std::vector<std::uint64_t>, kWarp> shuffled;  ///< by thread of the warp: its values of each shuffle

  static Grid& current() {
    static Grid& only = *new Grid;
    return only;
  }
};

}  // namespace tidepool::cuda

inline tidepool::cuda::Index threadIdx, blockIdx, blockDim, gridDim;

inline unsigned long long global_timer() {
  tidepool::cuda::Grid& grid = tidepool::cuda::Grid::current();
  grid.now += tidepool::cuda::Grid::kReadTime;
  return static_cast<std::uint64_t>(grid.now) / grid.tick * grid.tick;
}

inline void __syncwarp() {}

inline unsigned long long __shfl_down_sync(unsigned, unsigned long long value, int step) {
  using tidepool::cuda::Grid;
  Grid& grid = Grid::current();
  const unsigned lane = threadIdx.x % Grid::kWarp, from = lane + static_cast<unsigned>(step);
  const std::size_t call = grid.shuffled[lane].size();
  grid.shuffled[lane].push_back(value);
  return from < Grid::kWarp ? grid.shuffled[from].at(call) : value;
}

inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
  const unsigned long long before = *to;
  *to += value;
  return before;
}

inline unsigned long long atomicMin(unsigned long long* to, unsigned long long value) {
  const unsigned long long before = *to;
  if (value < before) *to = value;
  return before;
}
