// The repeated blocks of a network (transformer layers), by the numbers in the names of their modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/remat/layers.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A block of ops. Each range holds all forward or all backward ops of the block, and perhaps others in between; a
/// range that begins at kNever is empty.
struct NetworkBlock {
  std::uint32_t first = kNever, behind = 0;              ///< forward
  std::uint32_t backward = kNever, backward_behind = 0;  ///< backward
};

struct NetworkBlocks {
  static constexpr std::size_t kOutside = static_cast<std::size_t>(-1);

  std::vector<NetworkBlock> blocks;  ///< in forward order of their first ops
  std::vector<std::size_t> of_op;    ///< by op of the step: index of its block, or kOutside

  std::size_t size() const { return blocks.size(); }
};

/// A block contains the ops of one numbered module: ops of layers.7.up and layers.7.down belong to layers.7. If no
/// forward op belongs to a numbered module, every layer is a block. A backward op belongs to the block of its layer.
/// O(ops).
NetworkBlocks find_blocks(const Trace& trace, const Layers& layers);

}  // namespace tidepool
