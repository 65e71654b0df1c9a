// The layers of a network in one step, forward and backward, and its repeated blocks (transformer layers). Policies
// that work layer by layer use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/remat/saved.hpp"
#include "traces/trace.hpp"

namespace tidepool {

enum class LayerKind : std::uint8_t {
  kConvolution,
  kPool,
  kProduct,  ///< a product of matrices: fully connected layers, projections, attention, recurrent layers
  kOther,
};

struct Layer {
  std::uint32_t first = 0, behind = 0;              ///< its forward ops: [first, behind)
  std::uint32_t backward = 0, backward_behind = 0;  ///< its backward ops, likewise; may be none
  LayerKind kind = LayerKind::kOther;               ///< the first kind in the order above among its ops
  bool operator==(const Layer&) const = default;
};

/// A version that the forward phase makes and the backward phase reads. It can be absent in between.
struct Kept {
  Saved saved;
  std::uint32_t maker = 0;   ///< the layer that makes it
  std::uint32_t origin = 0;  ///< the layer that wrote its buffer first, if later ones update it in place (an activation
                             ///< after a convolution); otherwise the maker
  std::uint32_t reader = 0;  ///< the last layer that reads it forward; the maker if no other does
  std::uint32_t due = 0;     ///< the layer whose backward ops read it first
};

struct Layers {
  std::vector<Layer> layers;                        ///< in forward order
  std::vector<Kept> kept;                           ///< in the order of their producers
  std::uint32_t backward = 0, backward_behind = 0;  ///< the ops of the backward phase

  std::size_t size() const { return layers.size(); }
  /// The layer of a forward op. O(log layers).
  std::uint32_t layer_of(std::uint32_t op) const;
  /// The kind that is assumed to take most time: convolutions or, without any, products of matrices.
  LayerKind heavy() const;
};

/// Finds the layers. If any forward op has a module name, a layer is a sequence of forward ops of one module
/// (successive ops without a module count as one module). Otherwise a layer ends before an op that reads a kept version
/// of the layer, as in kernel libraries; versions below a thousandth of all kept bytes are ignored. Kinds are inferred
/// from op and module names.
///
/// Backward ops are assigned in their order. An op belongs to the last layer whose forward ops make or read all of its
/// inputs from the forward phase and from before the step, but not to a later layer than the previous op. An op without
/// such inputs, or without such a layer, belongs to the layer of the previous op. The loss is part of the last layers.
/// O(uses + backward ops * layers that share their inputs).
Layers find_layers(const Trace& trace);

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
