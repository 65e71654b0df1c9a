#include "tests/fake_cuda/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tests/fake_cuda/grid.hpp"
#include "validator/cuda/kernels.cu"

namespace tidepool::cuda {
namespace {

template <class Thread>
void run_warp(unsigned first, unsigned end, const Thread& thread) {
  Grid& grid = Grid::current();
  for (std::vector<std::uint64_t>& given : grid.shuffled) given.clear();
  for (threadIdx.x = end; threadIdx.x-- > first;) {
    thread();
    if (grid.shuffled[threadIdx.x % Grid::kWarp].size() != grid.shuffled[(end - 1) % Grid::kWarp].size())
      throw std::runtime_error{"the threads of a warp do not shuffle together"};
  }
}

template <class Thread>
void run_grid(const LaunchSize& size, double& now, const Thread& thread) {
  Grid& grid = Grid::current();
  grid.now = now;
  grid.tick = size.tick;
  gridDim.x = size.blocks;
  blockDim.x = size.threads;
  for (blockIdx.x = 0; blockIdx.x < size.blocks; ++blockIdx.x)
    for (unsigned first = 0; first < size.threads; first += Grid::kWarp)
      run_warp(first, std::min(size.threads, first + Grid::kWarp), thread);
  now = grid.now;
}

template <class Value>
Value read(void* argument) {
  Value value;
  std::memcpy(&value, argument, sizeof value);
  return value;
}

template <class... Args, std::size_t... Index>
BoundKernel bound(void (*kernel)(Args...), void** arguments, std::index_sequence<Index...>) {
  return [kernel, values = std::tuple<Args...>{read<Args>(arguments[Index])...}](const LaunchSize& size, double& now) {
    run_grid(size, now, [&] { std::apply(kernel, values); });
  };
}

template <class... Args>
Binder binder(void (*kernel)(Args...)) {
  return [kernel](void** arguments) { return bound(kernel, arguments, std::index_sequence_for<Args...>{}); };
}

}  // namespace

Binder find_kernel(const std::string& name) {
  static const std::map<std::string, Binder> kernels{
      {"tidepool_read", binder(tidepool_read)},   {"tidepool_note", binder(tidepool_note)},
      {"tidepool_write", binder(tidepool_write)}, {"tidepool_clear", binder(tidepool_clear)},
      {"tidepool_fold", binder(tidepool_fold)},   {"tidepool_repeat", binder(tidepool_repeat)},
      {"tidepool_spin", binder(tidepool_spin)},   {"tidepool_multiply", binder(tidepool_multiply)},
      {"tidepool_tick", binder(tidepool_tick)}};
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace tidepool::cuda
