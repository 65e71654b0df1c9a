// A model of two blocks of three modules each, forward and backward: the smallest model for tests of checkpoints.
#pragma once

#include <string>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// Two blocks and a loss. A block is a linear layer, an activation and a linear layer. Sizes are in bytes. Each block
/// keeps the input (h, 100) and the output (a, 60) of its activation; the second block reads the output of the first
/// one (y, 10). x (10) is the input, w (5) a parameter. After forward 355 bytes are alive: w, x, both h and a, the
/// first y, and g (10), the loss's gradient. Live bytes at backward ops:
///   7 makes ga (60): 415, then g and a are freed: 345 | 8 makes gh (100): 445, then ga and h are freed: 285
///   9 makes g (10): 295, then gh and y are freed: 185 | 10, 11, 12 the same in the first block: 245, 275, 125
struct TwoBlocks {
  std::string names = {};  ///< prefix of the names of ops
  TraceBuilder build{};
  BufferId w{}, x{};
  std::vector<BufferId> h{}, a{}, y{};
  Trace trace = make();

 private:
  Op op(const char* name, const std::string& module, Phase phase) {
    return {.name = build.text(names + name), .module = build.text(module), .phase = phase, .duration = 10_us};
  }
  BufferId made(Bytes size) { return build.alloc({.size = size, .kind = BufferKind::kActivation}); }
  void run(const Op& op, const std::vector<BufferId>& read, const std::vector<BufferId>& written) {
    std::vector<TraceBuilder::Touch> touches;
    for (const BufferId id : read) touches.push_back({id, Access::kRead, Evidence::kSchema});
    for (const BufferId id : written) touches.push_back({id, Access::kWrite, Evidence::kSchema});
    build.run(op, touches);
  }

  Trace make() {
    w = build.existing({.size = 5_B, .name = build.text("block.0.in.weight"), .kind = BufferKind::kParameter});
    x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
    BufferId in = x;
    for (const std::string block : {"block.0", "block.1"}) {
      h.push_back(made(100_B));
      run(op("mm", block + ".in", Phase::kForward), {in, w}, {h.back()});
      a.push_back(made(60_B));
      run(op("gelu", block + ".act", Phase::kForward), {h.back()}, {a.back()});
      y.push_back(made(10_B));
      run(op("mm", block + ".out", Phase::kForward), {a.back(), w}, {y.back()});
      in = y.back();
    }
    BufferId g = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
    run(op("loss", "", Phase::kForward), {y[1]}, {g});
    build.free(y[1]);
    for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const std::string block = i == 1 ? "block.1" : "block.0";
      const BufferId ga = build.alloc({.size = 60_B, .kind = BufferKind::kGradient});
      run(op("mm_backward", block + ".out", Phase::kBackward), {g, a[i], w}, {ga});
      build.free(g);
      build.free(a[i]);
      const BufferId gh = build.alloc({.size = 100_B, .kind = BufferKind::kGradient});
      run(op("gelu_backward", block + ".act", Phase::kBackward), {ga, h[i]}, {gh});
      build.free(ga);
      build.free(h[i]);
      g = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
      run(op("mm_backward", block + ".in", Phase::kBackward), {gh, i == 1 ? y[0] : x, w}, {g});
      build.free(gh);
      if (i == 1) build.free(y[0]);
    }
    run(op("sgd", "", Phase::kOptimizer), {g}, {});
    build.free(g);
    return build.finish();
  }
};

}  // namespace tidepool::tests
